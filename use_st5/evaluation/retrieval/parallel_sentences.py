"""Sentences of a language and their English translations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ParallelSentences:
    """Two lists of one length; each sentence is the translation of the one at its place.

    Attributes:
        language: The code of the language that is not English.
        foreign: Its sentences.
        english: Theirs in English.
    """

    language: str
    foreign: list[str]
    english: list[str]
