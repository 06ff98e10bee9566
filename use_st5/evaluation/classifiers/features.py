"""What a classifier reads."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Features(Protocol):
    """Rows of numbers that are read in blocks: an array, or something that computes them.

    Attributes:
        shape: `(rows, dim)`.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """`(rows, dim)`."""

    def __getitem__(self, rows: np.ndarray, /) -> Any:
        """The features `[len(rows), dim]` of the rows with these numbers."""
