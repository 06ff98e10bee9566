"""When SentEval stops a training."""

from __future__ import annotations

import numpy as np


class EarlyStopping:
    """Follows the dev accuracies of several trainings.

    The counter of evaluations that were no better than the best is never reset: a training stops at
    the (tenacity + 1)-th of them, wherever they lie (senteval/tools/classifier.py, `fit`).

    Args:
        shape: Of the trainings.
        tenacity: How many such evaluations are let pass.

    Attributes:
        best: Best accuracies so far.
        running: Which trainings go on.
    """

    def __init__(self, shape: tuple[int, ...], tenacity: int) -> None:
        self.best = np.full(shape, -1.0)
        self.running = np.ones(shape, bool)
        self._misses = np.zeros(shape, np.int64)
        self._tenacity = tenacity

    def update(self, accuracies: np.ndarray) -> np.ndarray:
        """Takes one evaluation of each training; which of the running ones improved."""
        better = self.running & (accuracies > self.best)
        self.best[better] = accuracies[better]
        self._misses += self.running & ~better
        self.running &= self._misses <= self._tenacity
        return better
