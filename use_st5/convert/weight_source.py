"""What every checkpoint format gives: names, shapes, and one tensor at a time."""

from __future__ import annotations

import abc
import re
from collections.abc import Iterable, Iterator

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
