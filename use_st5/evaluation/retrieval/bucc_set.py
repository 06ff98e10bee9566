"""Sentences of two languages, a few of which are translations of each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BUCCSet:
    """One part of a BUCC 2018 language pair.

    Attributes:
        foreign: Id → sentence in the language that is not English.
        english: Id → English sentence.
        gold: The ids of the translations, foreign and English.
    """

    foreign: dict[str, str]
    english: dict[str, str]
    gold: frozenset[tuple[str, str]]
