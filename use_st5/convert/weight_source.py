"""What every checkpoint format gives: names, shapes, and one tensor at a time."""

from __future__ import annotations

import abc
from collections.abc import Iterator

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

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis, in order.

        A source whose format allows it gives small ones, so that a large tensor is in memory only
        once, where it is to be.
        """
        yield self.read(name)
