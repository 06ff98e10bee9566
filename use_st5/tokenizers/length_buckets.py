"""A few fixed lengths, for compilers that make a program for each shape."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

BUCKETS = (16, 32, 64, 128)


def pad_to_bucket(ids: tf.Tensor, buckets: Sequence[int] = BUCKETS) -> tf.Tensor:
    """Pads or trims a batch of ids to the smallest of a few lengths that holds its longest row.

    XLA, and so a TPU, compiles one program for each shape. With this function, batches of one size
    need no more programs than there are buckets. It works on tensors and arrays, and inside
    `tf.data` pipelines. If texts are sorted by length before they are batched, they need little
    padding.

    Args:
        ids: int32 `[batch, length]`, padded with 0 on the right by any amount.
        buckets: Lengths, ascending.

    Returns:
        int32 `[batch, bucket]`.

    Raises:
        tf.errors.InvalidArgumentError: A row is longer than the last bucket; nothing is cut here.

    Examples:
        >>> encode = tf.function(model, jit_compile=True)
        >>> encode(pad_to_bucket(tokenizer.padded(texts, 128)))
    """
    ids = tf.convert_to_tensor(ids)
    positions = tf.range(1, tf.shape(ids)[1] + 1)
    longest = tf.maximum(tf.reduce_max(tf.where(ids != 0, positions, 0)), 0)  # 0 if no row
    tf.debugging.assert_less_equal(
        longest,
        buckets[-1],
        message=f"Expected rows of at most {buckets[-1]} ids (the last bucket): cut them first, "
        f"padded(text, {buckets[-1]}), or give a larger bucket.",
    )
    # In a graph this may run before the check above, and there is no bucket after the last one.
    longest = tf.minimum(longest, buckets[-1])
    width = tf.gather(list(buckets), tf.searchsorted(list(buckets), [longest])[0])
    ids = ids[:, :width]
    return tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
