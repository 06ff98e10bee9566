"""The range of a file's scores, and the similarity that a score stands for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

# Narrow ones first: the first that holds all scores of a file is taken for its own.
_USUAL = ((0.0, 1.0), (-1.0, 1.0), (1.0, 5.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))


@dataclasses.dataclass(frozen=True)
class ScoreRange:
    """The lowest and the highest score that a file could hold, whatever its rows happen to hold.

    Attributes:
        lowest: Of all possible scores.
        highest: Of all possible scores.
        scaled: Whether they become 0 … 1. Scores within −1 … 1 are cosines and stay as they are,
            unless the range was asked for.
        usual: Whether the range was asked for or is a usual one, and not that of the rows alone.
    """

    lowest: float
    highest: float
    scaled: bool
    usual: bool

    def target(self, score: float) -> float:
        """The target similarity of two texts with this score."""
        return (score - self.lowest) / (self.highest - self.lowest) if self.scaled else score

    def line(self, lowest: float, highest: float) -> str:
        """The log line about a file's scores, of which these are the lowest and the highest."""
        found = f"scores: {lowest:g} … {highest:g}"
        if not self.scaled:
            return f"{found}, not scaled"
        taken = f"{found}, scaled from {self.lowest:g} … {self.highest:g} to 0 … 1"
        return taken if self.usual else f"{taken} (not a usual range; --score-range sets another)"


def score_range(
    name: str, lowest: float, highest: float, asked: Sequence[float] | None
) -> ScoreRange:
    """The range of a file's scores, of which these are the lowest and the highest.

    `asked` is the range that is asked for; None: the narrowest usual one that holds all of them, or
    else that of the rows. Scores outside of it are a ValueError.
    """
    if asked is None:
        holding = [each for each in _USUAL if each[0] <= lowest and highest <= each[1]]
        bottom, top = holding[0] if holding else (lowest, highest)
        return ScoreRange(bottom, top, scaled=bottom < -1 or top > 1, usual=bool(holding))
    bottom, top = asked
    if lowest < bottom or highest > top:
        raise ValueError(
            f"{name}: expected scores from {bottom:g} to {top:g}, as --score-range says, found "
            f"scores from {lowest:g} to {highest:g}. Give a wider range, or leave it out."
        )
    return ScoreRange(bottom, top, scaled=True, usual=True)
