"""Pooling: from one vector per token to one vector per sentence.

The functions take `x`, `[batch, length, dim]`, and a bool mask `[batch, length]`, True for tokens
and False for padding; the values at padding have no effect, even if they are NaN. They return
float32 `[batch, dim]`, zeros for a row without tokens.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops


def masked_mean(x: Any, mask: Any) -> Any:
    """The mean of the tokens."""
    return ops.sum(_at_tokens(x, mask), axis=1) / _lengths(mask)


def masked_scaled_sum(x: Any, mask: Any) -> Any:
    """The sum of the tokens, divided by √length.

    USE paper (arXiv 1803.11175), footnote 2. In `USETransformer` only a linear layer stands between
    this sum and the scaling to length 1, so the division cancels out. There it keeps the numbers
    small, and keeps the values before the norm equal to those of the paper.
    """
    return ops.sum(_at_tokens(x, mask), axis=1) / ops.sqrt(_lengths(mask))


def masked_weighted_mean(x: Any, mask: Any) -> Any:
    """The mean of the tokens, each weighted by its position.

    SGPT (Muennighoff 2022, arXiv 2202.08904), section 3.1: the first token has the weight 1, the
    second one 2. The later ones have seen more of the text in a decoder.
    """
    positions = ops.cast(ops.arange(1, ops.shape(mask)[1] + 1), "float32")
    weights = ops.where(mask, positions, 0.0)
    total = ops.sum(_at_tokens(x, mask) * ops.expand_dims(weights, -1), axis=1)
    return total / ops.maximum(ops.sum(weights, axis=1, keepdims=True), 1.0)


def last_token(x: Any, mask: Any) -> Any:
    """The vector of the last token."""
    tokens_left = ops.cumsum(ops.cast(mask, "int32")[:, ::-1], axis=1)[:, ::-1]
    last = ops.logical_and(mask, ops.equal(tokens_left, 1))
    return ops.sum(_at_tokens(x, last), axis=1)


def masked_max(x: Any, mask: Any) -> Any:
    """The maximum of the tokens in each dimension.

    If several tokens have the maximum, the first one gets the gradient.
    """
    lowest = float(np.finfo(np.float32).min)
    values = _at_tokens(x, mask, lowest)
    # Not `ops.max`: its gradient divides by the number of entries that equal the maximum. XLA may
    # compute `x` twice with different rounding; then this number is 0, and the gradient NaN.
    indices = ops.argmax(values, axis=1)
    positions = ops.arange(ops.shape(values)[1], dtype=indices.dtype)
    is_maximum = ops.equal(positions[None, :, None], indices[:, None])
    maxima = ops.sum(ops.where(is_maximum, values, 0.0), axis=1)
    return ops.where(ops.any(mask, axis=1, keepdims=True), maxima, 0.0)


def first_token(x: Any) -> Any:
    """The vector of the first token, `[batch, length, dim]` → float32 `[batch, dim]`."""
    return ops.cast(x[:, 0], "float32")


def _at_tokens(x: Any, mask: Any, other: float = 0.0) -> Any:
    """`x` in float32 where the mask is True, and `other` at all other positions."""
    return ops.where(ops.expand_dims(mask, -1), ops.cast(x, "float32"), other)


def _lengths(mask: Any) -> Any:
    """The number of tokens, float32 `[batch, 1]`; 1 for a row without tokens."""
    return ops.maximum(ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True), 1.0)


def l2_normalize(x: Any, *, epsilon: float = 1e-12) -> Any:
    """`x / sqrt(Σx² + epsilon)` over the last axis, in float32; a zero vector stays zero.

    Args:
        x: `[..., dim]`.
        epsilon: Added to the squared length. The default is far below the squared length of any
            trained embedding, so the result has length 1 within 1e-6.

    Returns:
        float32 `[..., dim]`.
    """
    x = ops.cast(x, "float32")
    return x * ops.rsqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + epsilon)


@keras.saving.register_keras_serializable(package="use_st5")
class L2Normalize(keras.layers.Layer):
    """`l2_normalize` as a layer.

    Args:
        epsilon: Added to the squared length.

    Call arguments:
        x: `[..., dim]`.

    Returns:
        float32 `[..., dim]`.
    """

    def __init__(self, *, epsilon: float = 1e-12, **kwargs: Any) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.epsilon = epsilon

    def call(self, x: Any) -> Any:
        return l2_normalize(x, epsilon=self.epsilon)
