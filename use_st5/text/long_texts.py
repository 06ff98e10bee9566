"""Long texts in bounded memory: cut into pieces at white space, a block of pieces at a time.

A token of the text becomes some hundreds of bytes of strings and ids, and some thousands of
vectors. Batches of up to `LONG_BYTES` are read at once; of longer ones no more than a block's
tokens are held at a time, so that memory grows with the text itself alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

LONG_BYTES = 2**17  # a batch of 512 texts of 200 characters and more

_PIECES_IN_A_BLOCK = 512
_PIECE_BYTES = 250
_CUT = b"\xff"  # in no text that is UTF-8


def are_long(text: tf.Tensor) -> tf.Tensor:
    """Whether texts `[batch]` together exceed `LONG_BYTES`, a scalar bool."""
    return tf.reduce_sum(tf.cast(tf.strings.length(text), tf.int64)) > LONG_BYTES


def cut(
    text: tf.Tensor, *, between: str, piece_bytes: int = _PIECE_BYTES
) -> tuple[tf.Tensor, tf.Tensor]:
    """Cuts texts at single spaces, which are left out.

    Args:
        text: string `[batch]`, UTF-8.
        between: The class of characters, as a regular expression, that must stand on either side of
            a space where a text may be cut.
        piece_bytes: Length of a piece at least, but for a text's last one.

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
    """Takes a state through all blocks of pieces, one after the other.

    Args:
        read: A block's pieces and rows, and the state before it → the state after it.
        state: Tensors whose shapes do not change.
        pieces: string `[pieces]`.
        rows: The text of each, `[pieces]`.

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
