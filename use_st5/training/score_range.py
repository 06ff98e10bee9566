"""The range of a file's scores, and the similarity that a score stands for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

# Narrow ranges first: the first range that holds all scores of a file is used.
_USUAL = ((0.0, 1.0), (-1.0, 1.0), (1.0, 5.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))


@dataclasses.dataclass(frozen=True)
class ScoreRange:
    """The lowest and the highest possible score of a file, which its rows need not reach.

    Attributes:
        lowest: The lowest possible score.
        highest: The highest possible score.
        scaled: Whether scores are scaled to 0 … 1. Scores within −1 … 1 are cosines and stay
            unchanged, unless the user gave the range.
        usual: Whether the user gave the range or it is a usual one; if not, the rows have set it.
    """

    lowest: float
    highest: float
    scaled: bool
    usual: bool

    def target(self, score: float) -> float:
        """The target similarity of two texts with this score."""
        return (score - self.lowest) / (self.highest - self.lowest) if self.scaled else score

    def line(self, lowest: float, highest: float) -> str:
        """The log line about a file's scores, whose lowest and highest score are given."""
        text = f"scores: {lowest:g} … {highest:g}"
        if not self.scaled:
            return f"{text}, not scaled"
        line = f"{text}, scaled from {self.lowest:g} … {self.highest:g} to 0 … 1"
        return line if self.usual else f"{line} (not a usual range; --score-range sets another)"


def score_range(
    name: str, lowest: float, highest: float, requested: Sequence[float] | None
) -> ScoreRange:
    """The range of possible scores of a file, whose rows have scores from `lowest` to `highest`.

    `requested` is the range that the user gave; None: the narrowest usual range that holds all
    scores, or else the range of the rows. Scores outside of a given range raise a ValueError.
    """
    if requested is None:
        ranges = [each for each in _USUAL if each[0] <= lowest and highest <= each[1]]
        bottom, top = ranges[0] if ranges else (lowest, highest)
        return ScoreRange(bottom, top, scaled=bottom < -1 or top > 1, usual=bool(ranges))
    bottom, top = requested
    if lowest < bottom or highest > top:
        raise ValueError(
            f"{name}: expected scores from {bottom:g} to {top:g}, as --score-range says, found "
            f"scores from {lowest:g} to {highest:g}. Give a wider range, or leave it out."
        )
    return ScoreRange(bottom, top, scaled=True, usual=True)
