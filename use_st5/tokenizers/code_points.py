"""Tables over all code points of Unicode, inside the TensorFlow graph."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

CODE_POINTS = 0x110000
_BLOCK = 256
# A table of rewritings holds the distance from a code point to the one that replaces it. If a text
# of any other length replaces it, the value is at least `_POOLED`: it contains the place of the
# text in the pool, and its length.
_POOLED = 2**24
_LENGTHS = 2**8


def categories() -> Iterator[tuple[int, str]]:
    """Each assigned code point that is no surrogate, with its category, such as "Lu"."""
    for point in range(CODE_POINTS):
        if (category := unicodedata.category(chr(point))) not in ("Cn", "Cs"):
            yield point, category


def in_ranges(ranges: str) -> list[int]:
    """The code points of ranges such as "41-5A 61"."""
    points: list[int] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        points += range(int(first, 16), int(last or first, 16) + 1)
    return points


def decode(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The code points of all texts, int32 `[points]`, and their row splits, int64 `[batch + 1]`."""
    decoded = tf.raw_ops.UnicodeDecode(input=text, input_encoding="UTF-8", errors="replace")
    return decoded.char_values, decoded.row_splits


def spread(lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The row and the column of each value in rows of given lengths, both int32 `[values]`."""
    rows = tf.repeat(tf.range(tf.size(lengths)), lengths)
    begins = tf.cumsum(lengths, exclusive=True)
    return rows, tf.range(tf.size(rows)) - tf.gather(begins, rows)


class CodePointTable:
    """A number for each code point, read by two gathers; equal blocks of 256 are stored once.

    Args:
        values: int32 `[CODE_POINTS]`.
    """

    def __init__(self, values: np.ndarray) -> None:
        blocks, places = np.unique(values.reshape(-1, _BLOCK), axis=0, return_inverse=True)
        self._places = tf.constant(places.reshape(-1) * _BLOCK, tf.int32)
        self._values = tf.constant(blocks.reshape(-1), tf.int32)

    def __call__(self, points: tf.Tensor) -> tf.Tensor:
        """The numbers of code points, int32 of any shape → int32 of the same."""
        place = tf.gather(self._places, tf.bitwise.right_shift(points, 8))
        return tf.gather(self._values, place + tf.bitwise.bitwise_and(points, _BLOCK - 1))


class CodePointRewriter:
    """Replaces each code point by none, one or several others, independent of its neighbours.

    Args:
        rewritings: Code point → text; code points that are not named stay.
    """

    def __init__(self, rewritings: dict[int, str]) -> None:
        values = np.zeros(CODE_POINTS, np.int32)
        pool: list[int] = []
        for point, text in rewritings.items():
            if len(text) == 1:
                values[point] = ord(text) - point
            else:
                values[point] = _POOLED + len(pool) * _LENGTHS + len(text)
                pool += map(ord, text)
        self._table = CodePointTable(values)
        self._pool = tf.constant([*pool, 0], tf.int32)

    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        """The texts, rewritten: string `[batch]` → string `[batch]`, UTF-8."""
        points, splits = decode(text)
        values = self._table(points)
        pooled = values >= _POOLED
        points, splits = tf.cond(
            tf.reduce_any(pooled),
            lambda: self._with_pool(points, values, pooled, splits),
            lambda: (points + values, splits),
        )
        return tf.raw_ops.UnicodeEncode(
            input_values=points, input_splits=splits, output_encoding="UTF-8"
        )

    def _with_pool(
        self, points: tf.Tensor, values: tf.Tensor, pooled: tf.Tensor, splits: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Code points and splits if some code points become none or several."""
        places = values - _POOLED
        lengths = tf.where(pooled, places % _LENGTHS, 1)
        owners, columns = spread(lengths)
        sources = tf.gather(places // _LENGTHS, owners) + columns
        pool_points = tf.gather(self._pool, tf.where(tf.gather(pooled, owners), sources, 0))
        rewritten = tf.where(
            tf.gather(pooled, owners), pool_points, tf.gather(points + values, owners)
        )
        ends = tf.concat([[0], tf.cumsum(lengths)], axis=0)
        return rewritten, tf.cast(tf.gather(ends, splits), splits.dtype)
