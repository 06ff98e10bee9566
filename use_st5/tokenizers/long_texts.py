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
    """Cuts texts at single spaces, which are left out.

    Args:
        text: string `[batch]`, UTF-8.
        between: A regular expression for one character. A text is cut only at spaces that have such
            a character on both sides.
        piece_bytes: The minimum length of a piece, except for a text's last one.

    Returns:
        `(pieces, positions)`: string `[pieces]`, and int64 `[pieces, 2]`, the text that a piece
        belongs to and its number within it. Each text has at least one piece.
    """
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
    """Updates a state with all blocks of pieces, one after the other.

    Args:
        read: A block's pieces and rows, and the state before it → the state after it.
        state: Tensors whose shapes do not change.
        pieces: string `[pieces]`.
        rows: The text that each piece belongs to, `[pieces]`.

    Returns:
        The last state.
    """

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


def counted(
    text: tf.Tensor, number: Callable[[tf.Tensor], tf.Tensor], *, keep_spaces: bool = False
) -> tf.Tensor:
    """The number of tokens of each text, int32 `[batch]`; the arguments are those of `summed`."""
    return summed(text, number, tf.zeros([tf.shape(text)[0]], tf.int32), keep_spaces=keep_spaces)


def summed(
    text: tf.Tensor,
    sums: Callable[[tf.Tensor], tf.Tensor],
    zeros: tf.Tensor,
    *,
    keep_spaces: bool = False,
) -> tf.Tensor:
    """Sums numbers over the tokens of each text; long batches are read a block at a time.

    Args:
        text: string `[batch]`.
        sums: string `[texts]` → numbers `[texts, ...]`, the sums over the tokens of each text.
        zeros: `[batch, ...]`; the sums of the blocks are added in this dtype.
        keep_spaces: Whether a space is a part of the token after it, not only a separator.

    Returns:
        The sums, with the shape and the dtype of `zeros`.
    """
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
