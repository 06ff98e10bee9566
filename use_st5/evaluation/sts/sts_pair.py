"""One pair of sentences with its gold score."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class STSPair:
    """Two sentences and people's mean judgement of their similarity.

    Attributes:
        first: A sentence.
        second: Another.
        score: The gold score: 0 to 5 in STS, 1 to 5 in SICK.
    """

    first: str
    second: str
    score: float
