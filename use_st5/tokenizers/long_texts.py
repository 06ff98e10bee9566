"""Long texts in bounded memory: they are split at white space, and processed in blocks.

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
# Characters that are a piece of every vocabulary, or a part of one, and stay what they are beside a
# space: no piece goes on behind it.
_PLAIN = "[!-~]"
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


def beginnings(text: tf.Tensor, tokens: int) -> tf.Tensor:
    """As much of each text as its first tokens may need: short texts as they are.

    Args:
        text: string `[batch]`.
        tokens: How many.

    Returns:
        string `[batch]`.
    """

    def of_long() -> tf.Tensor:
        # There is at least one token in a piece.
        pieces, positions = cut(as_utf8(text), between=_PLAIN)
        kept = positions[:, 1] < tokens
        return tf.strings.unsorted_segment_join(
            tf.boolean_mask(pieces, kept),
            tf.boolean_mask(positions[:, 0], kept),
            tf.shape(text)[0],
            separator=" ",
        )

    return tf.cond(are_long(text), of_long, lambda: text)


def counted(
    text: tf.Tensor, number: Callable[[tf.Tensor], tf.Tensor], *, keep_spaces: bool = False
) -> tf.Tensor:
    """Counts the tokens of texts.

    Args:
        text: string `[batch]`.
        number: string `[texts]` → int32 `[texts]`, the tokens of each.
        keep_spaces: Whether a space is a part of the token behind it, not a mere separator.

    Returns:
        int32 `[batch]`.
    """
    return summed(text, number, tf.zeros([tf.shape(text)[0]], tf.int32), keep_spaces=keep_spaces)


def summed(
    text: tf.Tensor,
    sums: Callable[[tf.Tensor], tf.Tensor],
    zeros: tf.Tensor,
    *,
    keep_spaces: bool = False,
) -> tf.Tensor:
    """Adds up what the tokens of texts have, of long texts a block at a time.

    Args:
        text: string `[batch]`.
        sums: string `[texts]` → numbers `[texts, ...]`, the sums over the tokens of each.
        zeros: `[batch, ...]`, in whose dtype the sums of the blocks are added.
        keep_spaces: Whether a space is a part of the token behind it, not a mere separator.

    Returns:
        Of the shape and the dtype of `zeros`.
    """
    batch = tf.shape(text)[0]

    def read(pieces: tf.Tensor, rows: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor]:
        more = tf.math.unsorted_segment_sum(sums(pieces), rows, batch)
        return (total + tf.cast(more, total.dtype),)

    def of_long() -> tf.Tensor:
        pieces, positions = cut(as_utf8(text), between=_PLAIN)
        if keep_spaces:
            pieces = tf.strings.join([tf.where(positions[:, 1] > 0, " ", ""), pieces])
        return fold(read, (zeros,), pieces, positions[:, 0])[0]

    return tf.cond(are_long(text), of_long, lambda: tf.cast(sums(text), zeros.dtype))


def as_utf8(text: tf.Tensor) -> tf.Tensor:
    """Invalid UTF-8 is read as U+FFFD, byte for byte as in Python's `decode`."""
    return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
