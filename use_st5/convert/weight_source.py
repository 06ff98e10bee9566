"""What every checkpoint format gives: names, shapes, and one tensor at a time."""

from __future__ import annotations

import abc

import numpy as np


class WeightSource(abc.ABC):
    """The tensors of a checkpoint, of which one is in memory at a time.

    Attributes:
        where: The checkpoint's file or folder, for messages.
    """

    where: str

    @abc.abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
