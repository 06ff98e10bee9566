"""L2 normalization."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


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

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}
