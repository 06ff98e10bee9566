"""One point of a learning curve."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class CurvePoint:
    """What classifiers trained on so many examples reached.

    Attributes:
        examples: Number of training examples of each draw.
        accuracies: Test accuracies in 0 … 1, one per draw.
    """

    examples: int
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Of the accuracies."""
        return statistics.fmean(self.accuracies)

    @property
    def deviation(self) -> float:
        """Their sample standard deviation (divided by draws − 1); NaN of one draw."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else float("nan")
