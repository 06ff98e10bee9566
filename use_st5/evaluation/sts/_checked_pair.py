"""A line of an STS set as a pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from use_st5.evaluation.sts.sts_pair import STSPair


def checked_pair(path: Path, number: int, sentences: Sequence[str], score: float) -> STSPair:
    """The pair of line `number` of `path`, its sentences without white space at their ends.

    Raises:
        ValueError: There are not two sentences, or one is blank.
    """
    stripped = [sentence.strip() for sentence in sentences]
    if len(stripped) != 2 or not all(stripped):
        raise ValueError(f"{path}:{number}: expected two sentences, received {stripped}.")
    return STSPair(*stripped, score)
