"""Splits texts into the words of GPT-2's and RoBERTa's vocabularies, inside the graph."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from use_st5.tokenizers.code_points import (
    CODE_POINTS,
    CodePointTable,
    categories,
    decode,
    in_ranges,
)

_SPACE, _LETTER, _NUMBER, _OTHER = range(4)
_OUTSIDE = -1  # before the first character of a text and after its last one

# Letters and numbers of Unicode 15 and 16, which Python 3.11 does not know.
_LETTERS = in_ranges(
    "1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D4A-10D65 10D6F-10D85 10EC2-10EC4 1123F-11240 "
    "11380-11389 1138B 1138E 11390-113B5 113B7 113D1 113D3 11BC0-11BE0 11F02 11F04-11F10 "
    "11F12-11F33 1342F 13441-13446 13460-143FA 16100-1611D 16D40-16D6C 18CFF 1B132 1B155 "
    "1DF25-1DF2A 1E030-1E06D 1E4D0-1E4EB 1E5D0-1E5ED 1E5F0 2B739 2EBF0-2EE5D 31350-323AF"
)
_NUMBERS = in_ranges(
    "10D40-10D49 116D0-116E3 11BF0-11BF9 11F50-11F59 16130-16139 16D70-16D79 1CCF0-1CCF9 "
    "1D2C0-1D2D3 1E4F0-1E4F9 1E5F1-1E5FA"
)
_WHITE_CONTROLS = in_ranges("9-D 85")


def byte_letters() -> list[str]:
    """The letter that stands for each byte in files; a printable byte stands for itself."""
    plain = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    other_bytes = (byte for byte in range(256) if byte not in plain)
    letters = {byte: chr(byte) for byte in plain}
    letters |= {byte: chr(256 + number) for number, byte in enumerate(other_bytes)}
    return [letters[byte] for byte in range(256)]


class ByteLevelWords:
    r"""Cuts texts into words, white space included; joined, the words are the texts again.

    The words are the matches of GPT-2's pattern, which RE2 cannot express:

        's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

    A word is a run of letters, of numbers or of other characters, with the space before it; or a
    clitic after an apostrophe that begins a run; or white space. The last white-space character
    before another run is a word of its own, unless it is a space.
    """

    def __init__(self) -> None:
        kinds = np.full(CODE_POINTS, _OTHER, np.int32)
        for point, category in categories():
            kinds[point] = {"L": _LETTER, "N": _NUMBER, "Z": _SPACE}.get(category[0], _OTHER)
        kinds[_LETTERS], kinds[_NUMBERS], kinds[_WHITE_CONTROLS] = _LETTER, _NUMBER, _SPACE
        self._kinds = CodePointTable(kinds)

    def __call__(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The words of all texts, one text after the other.

        Args:
            text: string `[batch]`; invalid UTF-8 is read as U+FFFD.

        Returns:
            `(words, splits)`: string `[words]`, and the row splits of the texts, int32
            `[batch + 1]`.
        """
        points, splits = decode(text)
        places = tf.range(tf.size(points, tf.int64))
        # The number of texts that begin at each code point: more than 1 if one is empty.
        firsts = tf.math.bincount(
            tf.cast(splits, tf.int32), minlength=tf.size(points) + 1, dtype=tf.int32
        )
        begins = self._begins(points, firsts[:-1] > 0, firsts[1:] > 0)
        starts = tf.boolean_mask(places, begins)
        words = tf.raw_ops.UnicodeEncode(
            input_values=points,
            input_splits=tf.concat([starts, [tf.size(points, tf.int64)]], axis=0),
            output_encoding="UTF-8",
        )
        before = tf.cumsum(tf.cast(begins, tf.int32))
        return words, tf.gather(tf.concat([[0], before], axis=0), splits)

    def _begins(self, points: tf.Tensor, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        """Whether a word begins at each code point, bool `[points]`.

        Args:
            points: int32 `[points]`.
            first: Whether the code point is the first of a text, bool `[points]`.
            last: Whether the code point is the last of a text, bool `[points]`.
        """
        kinds = self._kinds(points)
        before = tf.where(first, _OUTSIDE, tf.roll(kinds, 1, axis=0))
        behind = tf.where(last, _OUTSIDE, tf.roll(kinds, -1, axis=0))
        after_space = ~first & (tf.roll(points, 1, axis=0) == ord(" "))
        changes = kinds != before
        begins = tf.where(
            kinds == _SPACE,
            changes | ((behind != _SPACE) & (behind != _OUTSIDE)),
            changes & ~after_space,
        )
        return _with_clitics(points, first, begins)


def _with_clitics(points: tf.Tensor, first: tf.Tensor, begins: tf.Tensor) -> tf.Tensor:
    """The beginnings of words, if clitics such as "'s" are words of their own."""
    quotes = tf.where((points == ord("'")) & begins)[:, 0]
    # Two more places, so that two characters follow every quote; they belong to no text.
    points, first = tf.pad(points, [[0, 2]]), tf.pad(first, [[0, 2]], constant_values=True)
    one = tf.where(tf.gather(first, quotes + 1), 0, tf.gather(points, quotes + 1))
    two = tf.where(tf.gather(first, quotes + 2), 0, tf.gather(points, quotes + 2))
    short = _is_one_of(tf.stack([one], axis=1), "s", "t", "m", "d")
    long = _is_one_of(tf.stack([one, two], axis=1), "re", "ve", "ll")
    letters = tf.cast(short, tf.int64) + 2 * tf.cast(long, tf.int64)
    clitics = tf.where(letters)
    inside = tf.gather(quotes, clitics) + 1
    behind = inside + tf.gather(letters, clitics)
    begins = tf.pad(begins, [[0, 2]])
    begins = tf.tensor_scatter_nd_update(begins, inside, tf.zeros_like(inside[:, 0], tf.bool))
    begins = tf.tensor_scatter_nd_update(begins, behind, tf.ones_like(behind[:, 0], tf.bool))
    return begins[:-2]


def _is_one_of(points: tf.Tensor, *texts: str) -> tf.Tensor:
    """Whether each row of code points `[number, letters]` is one of the texts of that length."""
    matches = points[:, None] == [[*map(ord, text)] for text in texts]
    return tf.reduce_any(tf.reduce_all(matches, axis=2), axis=1)
