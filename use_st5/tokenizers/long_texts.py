"""Long texts in bounded memory: they are split at white space, and processed in blocks.

A token of the text takes some hundreds of bytes as strings and ids, and some thousands as vectors.
Batches of up to `LONG_BYTES` are read at once. Of longer batches only the tokens of one block are
held at a time, so that memory grows only with the text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

LONG_BYTES = 2**17  # more than a batch of 512 texts of 200 characters

_PIECES_IN_A_BLOCK = 512
_PIECE_BYTES = 250
# In every vocabulary each of these characters is a piece or a part of one, and a space next to it
# does not change it: no piece continues after the space.
_PLAIN = "[!-~]"
_CUT = b"\xff"  # never occurs in UTF-8


def are_long(text: tf.Tensor) -> tf.Tensor:
    """Whether texts `[batch]` together exceed `LONG_BYTES`, a scalar bool."""
    return tf.reduce_sum(tf.cast(tf.strings.length(text), tf.int64)) > LONG_BYTES


def cut(
    text: tf.Tensor, *, between: str, piece_bytes: int = _PIECE_BYTES
) -> tuple[tf.Tensor, tf.Tensor]:
    """Cuts texts at spaces between `between`: pieces, and int64 `[text, number]` of each."""
    # \C is any byte. RE2 reads the text once, whatever the number of pieces.
    pattern = rf"(\C{{{piece_bytes}}}\C*?{between}) ({between})"
    marked = tf.strings.regex_replace(text, pattern, b"\\1" + _CUT + b"\\2")
    positions, pieces, _ = tf.raw_ops.StringSplitV2(input=marked, sep=_CUT)
    return pieces, positions


def fold(
    read: Callable[..., Sequence[tf.Tensor]],
    state: Sequence[tf.Tensor],
    pieces: tf.Tensor,
    rows: tf.Tensor,
) -> Sequence[tf.Tensor]:
    """Updates a state with all blocks of pieces (of the texts `rows`), one after the other."""

    def block(start: tf.Tensor, *state: Any) -> tuple[Any, ...]:
        stop = start + _PIECES_IN_A_BLOCK
        return stop, *read(pieces[start:stop], rows[start:stop], *state)

    return tf.while_loop(
        lambda start, *_: start < tf.size(pieces),
        block,
        (tf.constant(0), *state),
        parallel_iterations=1,
    )[1:]


def beginnings(text: tf.Tensor, tokens: int) -> tf.Tensor:
    """The beginning of each text that has its first tokens; short batches stay as they are."""

    def of_long() -> tf.Tensor:
        # There is at least one token in a piece.
        pieces, positions = cut(as_utf8(text), between=_PLAIN)
        mask = positions[:, 1] < tokens
        return tf.strings.unsorted_segment_join(
            tf.boolean_mask(pieces, mask),
            tf.boolean_mask(positions[:, 0], mask),
            tf.shape(text)[0],
            separator=" ",
        )

    return tf.cond(are_long(text), of_long, lambda: text)


def summed(
    text: tf.Tensor,
    sums: Callable[[tf.Tensor], tf.Tensor],
    zeros: tf.Tensor,
    *,
    keep_spaces: bool = False,
) -> tf.Tensor:
    """Sums numbers over the tokens of each text, as `zeros`; long batches a block at a time."""
    batch = tf.shape(text)[0]

    def read(pieces: tf.Tensor, rows: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor]:
        block_sums = tf.math.unsorted_segment_sum(sums(pieces), rows, batch)
        return (total + tf.cast(block_sums, total.dtype),)

    def of_long() -> tf.Tensor:
        pieces, positions = cut(as_utf8(text), between=_PLAIN)
        if keep_spaces:
            pieces = tf.strings.join([tf.where(positions[:, 1] > 0, " ", ""), pieces])
        return fold(read, (zeros,), pieces, positions[:, 0])[0]

    return tf.cond(are_long(text), of_long, lambda: tf.cast(sums(text), zeros.dtype))


def as_utf8(text: tf.Tensor) -> tf.Tensor:
    """Replaces invalid UTF-8 by U+FFFD, byte for byte as Python's `decode` does."""
    return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
