"""Which rows one classifier is trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows by their numbers.

    Attributes:
        train: `[rows]`, to train on.
        dev: `[rows]`, to score on. None: a classifier that stops early holds out some of `train`.
    """

    train: np.ndarray
    dev: np.ndarray | None = None
