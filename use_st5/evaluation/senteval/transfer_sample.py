"""A sentence, or a pair of sentences, and its class."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TransferSample:
    """What a classifier is to tell apart.

    Attributes:
        sentences: One or two, each in tokens joined by single spaces.
        label: The class, from 0.
    """

    sentences: tuple[str, ...]
    label: int

    def order(self) -> tuple[int, ...]:
        """What SentEval sorts by: the numbers of tokens, then the label."""
        return *(len(sentence.split()) for sentence in self.sentences), self.label
