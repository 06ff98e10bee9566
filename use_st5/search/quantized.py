"""Vectors of length 1 in fewer bits: a search reads less, and finds nearly the same."""

from __future__ import annotations

import numpy as np

# The signs of the eight bits of each byte, the highest bit first: float32 [256, 8].
_SIGNS = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) - 1


class Int8Rows:
    """A matrix of one byte a number and one scale a row, which a search reads as float32.

    Args:
        codes: int8 `[rows, dim]`.
        scales: float32 `[rows]`.
    """

    def __init__(self, codes: np.ndarray, scales: np.ndarray) -> None:
        self._codes, self._scales = codes, scales

    @property
    def shape(self) -> tuple[int, ...]:
        """`(rows, dim)`."""
        return self._codes.shape

    @property
    def longest(self) -> float:
        """What no row is longer than, where the vectors had length 1."""
        return 1.0 + self.shape[1] ** 0.5 / 254

    def __getitem__(self, rows: slice, /) -> np.ndarray:
        """Some rows, float32 `[n, dim]`."""
        decoded = self._codes[rows].astype(np.float32)
        decoded *= self._scales[rows, None]
        return decoded

    @staticmethod
    def encoded(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes and scales of vectors `[n, dim]`; a row's largest number becomes ±127."""
        scales = (np.abs(vectors).max(axis=1) / 127).astype(np.float32)
        codes = np.rint(vectors / np.where(scales > 0, scales, 1.0)[:, None])
        return codes.astype(np.int8), scales


class BinaryRows:
    """A matrix of one bit a number, which a search reads as ±1.

    The queries keep all their digits: the product of numbers with signs orders the rows better
    than a count of the signs that differ.

    Args:
        codes: Bits in bytes, uint8 `[rows, ⌈dim/8⌉]`.
        dimension: Numbers in a row.
    """

    def __init__(self, codes: np.ndarray, dimension: int) -> None:
        self._codes, self._dimension = codes, dimension

    @property
    def shape(self) -> tuple[int, ...]:
        """`(rows, dim)`."""
        return len(self._codes), self._dimension

    @property
    def longest(self) -> float:
        """The length of every row."""
        return self._dimension**0.5

    def __getitem__(self, rows: slice, /) -> np.ndarray:
        """Some rows, float32 `[n, dim]`."""
        codes = self._codes[rows]
        return _SIGNS.take(codes, axis=0).reshape(len(codes), -1)[:, : self._dimension]

    @staticmethod
    def encoded(vectors: np.ndarray) -> np.ndarray:
        """Codes of vectors `[n, dim]`: a bit says that a number is above 0."""
        return np.packbits(vectors > 0, axis=1)
