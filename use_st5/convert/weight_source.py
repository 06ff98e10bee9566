"""What every checkpoint format gives: names, shapes, and one tensor at a time."""

from __future__ import annotations

import abc
import re
from collections.abc import Iterable, Iterator, Mapping

# Registers bfloat16 with NumPy.
import ml_dtypes  # noqa: F401
import numpy as np

_NUMBERS = re.compile(r"bfloat16|float(16|32|64)|u?int(8|16|32|64)|bool|\|b1|[<>|=]?[fiu][1248]")


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

    def check_stored(self, names: Iterable[str]) -> None:  # noqa: B027 (not every format's)
        """Holds the shapes of tensors against the bytes that are stored for them.

        A model takes memory for its shapes before a tensor is read. Formats whose opening has
        compared them need no more.

        Raises:
            FileNotFoundError: A file is missing.
            ValueError: There are fewer bytes than the tensors have.
        """

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis, in order.

        A source whose format allows it gives small ones, so that a large tensor is in memory only
        once, where it is to be.
        """
        yield self.read(name)


class RenamedSource(WeightSource):
    """Some tensors of another source, by other names.

    Args:
        source: The checkpoint.
        names: New name → name in the checkpoint; what is not among them is not seen.
    """

    def __init__(self, source: WeightSource, names: Mapping[str, str]) -> None:
        self.where = source.where
        self._source = source
        self._names = dict(names)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        shapes = self._source.shapes()
        return {new: shapes[old] for new, old in self._names.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        return self._source.read(self._names[name])

    def check_stored(self, names: Iterable[str]) -> None:
        """Holds the shapes of tensors against the bytes that are stored for them."""
        self._source.check_stored(self._names[name] for name in names)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis."""
        return self._source.pieces(self._names[name])


def number_dtype(name: object) -> np.dtype:
    """The dtype of a checkpoint's numbers, by the name that a file gives it.

    Raises:
        ValueError: It is no name, or one of something else than numbers.
    """
    if isinstance(name, str) and _NUMBERS.fullmatch(name):
        try:
            return np.dtype(name)
        except TypeError:  # "f1" and its like
            pass
    raise ValueError(f"expected a dtype of numbers, such as float32, received {name!r}")
