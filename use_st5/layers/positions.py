"""Positions: T5's trained bias, rotations of queries and keys, and sinusoids."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from use_st5.layers.random_normal import RandomNormal


def relative_position_bucket(
    relative_position: Any, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
) -> Any:
    """The bucket of each distance (int32, key minus query): Raffel et al. 2020, section 2.1."""
    offset = 0
    if bidirectional:
        num_buckets //= 2
        offset = num_buckets * ops.cast(relative_position > 0, "int32")
        distance = ops.abs(relative_position)
    else:
        distance = ops.maximum(-relative_position, 0)
    exact = num_buckets // 2
    # `maximum` avoids the logarithm of 0 in unused entries. The original code has the same epsilon,
    # so that float32 rounds equally at the borders of the buckets.
    ratio = ops.cast(ops.maximum(distance, 1), "float32") / exact + 1.1920929e-07
    scale = (num_buckets - exact) / math.log(max_distance / exact)
    far = exact + ops.cast(ops.log(ratio) * scale, "int32")
    far = ops.minimum(far, num_buckets - 1)
    return offset + ops.where(distance < exact, distance, far)


@keras.saving.register_keras_serializable(package="use_st5")
class RelativePositionBias(keras.layers.Layer):
    """One number for each head and each bucket of distances, added to the attention scores.

    All layers of a stack share one such table.

    Args:
        num_heads: Number of attention heads.
        bidirectional: True in an encoder, False in a decoder.
        num_buckets: Number of buckets.
        max_distance: Distance in tokens; all distances from here on share a bucket.
        stddev: Standard deviation of the initial values.

    Call arguments:
        query_length: Number of query positions.
        key_length: Number of key positions.

    Returns:
        float32 `[1, num_heads, query_length, key_length]`.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        bidirectional: bool,
        num_buckets: int = 32,
        max_distance: int = 128,
        stddev: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.bidirectional = bidirectional
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.stddev = stddev

    def build(self, _input_shape: Any = None) -> None:
        self.table = self.add_weight(
            shape=(self.num_buckets, self.num_heads),
            initializer=RandomNormal(stddev=self.stddev),
            autocast=False,  # the bias is added to scores in float32
            name="table",
        )
        self.built = True

    def call(self, query_length: int, key_length: int) -> Any:
        queries = ops.arange(query_length, dtype="int32")[:, None]
        keys = ops.arange(key_length, dtype="int32")[None, :]
        buckets = relative_position_bucket(
            keys - queries,
            bidirectional=self.bidirectional,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
        )
        bias = ops.take(ops.cast(self.table, "float32"), buckets, axis=0)
        return ops.transpose(bias, (2, 0, 1))[None]


def rotary_angles(length: Any, width: int, theta: float) -> tuple[Any, Any]:
    """Cosines and sines of `p · theta^(-2i / width)`, float32 `[length, width / 2]` (RoFormer)."""
    # In float32, as in transformers: at 8,000 positions, the rounding of a rate matters.
    powers = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    rates = np.float32(1) / np.float32(theta) ** powers
    angles = ops.cast(ops.arange(length), "float32")[:, None] * rates[None]
    return ops.cos(angles), ops.sin(angles)


def rotated(x: Any, angles: tuple[Any, Any]) -> Any:
    """Rotates entries `i` and `i + width / 2` of `[batch, heads, length, width]`, in float32."""
    cosines, sines = angles
    one, two = ops.split(ops.cast(x, "float32"), 2, axis=-1)
    turned = ops.concatenate([one * cosines - two * sines, two * cosines + one * sines], axis=-1)
    return ops.cast(turned, x.dtype)


_LONGEST_WAVE = 10_000.0


def sinusoidal_positions(length: Any, dim: int) -> Any:
    """Vaswani et al. 2017, 3.5: all sines, then all cosines, float32 `[length, dim]`."""
    waves = dim // 2
    rates = _LONGEST_WAVE ** (-np.arange(waves) / (waves - 1))
    angles = ops.cast(ops.arange(length), "float32")[:, None] * rates.astype(np.float32)[None]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=1)
