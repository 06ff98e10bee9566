"""T5's feed-forward layer, plain or gated."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.random_normal import RandomNormal
from use_st5.models.t5.config import Activation


@keras.saving.register_keras_serializable(package="use_st5")
class T5FeedForward(keras.layers.Layer):
    """Two dense layers without biases (`t5x/examples/t5/layers.py`, MlpBlock).

    Args:
        intermediate_dim: Width between the two.
        activation: "relu": `relu(x·W) · W_out`, T5 1.0. "gated_gelu":
            `(gelu(x·W_0) ⊙ x·W_1) · W_out`, T5 1.1 and mT5; the gelu is its tanh approximation.
        dropout: Rate between the two, in training.

    Call arguments:
        x: `[..., dim]`.
        training: Whether dropout acts.

    Returns:
        `[..., dim]`.

    Raises:
        ValueError: The activation is unknown.
    """

    def __init__(
        self,
        intermediate_dim: int,
        *,
        activation: Activation = "relu",
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if activation not in ("relu", "gated_gelu"):
            raise ValueError(
                f'Unknown activation: {activation!r}. Expected "relu" or "gated_gelu".'
            )
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.dropout = dropout
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    @property
    def gated(self) -> bool:
        """Whether a second dense layer multiplies the activated one."""
        return self.activation == "gated_gelu"

    def build(self, input_shape: tuple[Any, ...]) -> None:
        dim = input_shape[-1]
        self.inner = self._dense(self.intermediate_dim, dim, "inner")
        self.linear = self._dense(self.intermediate_dim, dim, "linear") if self.gated else None
        self.outer = self._dense(dim, self.intermediate_dim, "outer")
        self.built = True

    @property
    def linear_layers(self) -> dict[str, LoRADense]:
        """Role → layer, for adapters."""
        layers = {"inner": self.inner, "linear": self.linear, "outer": self.outer}
        return {role: layer for role, layer in layers.items() if layer is not None}

    def call(self, x: Any, training: bool = False) -> Any:
        if self.linear is not None:
            hidden = keras.ops.gelu(self.inner(x), approximate=True) * self.linear(x)
        else:
            hidden = keras.ops.relu(self.inner(x))
        return self.outer(self.dropout_layer(hidden, training=training))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "dropout": self.dropout,
        }

    def _dense(self, units: int, width: int, name: str) -> LoRADense:
        dense = LoRADense(
            units,
            use_bias=False,
            kernel_initializer=RandomNormal(stddev=width**-0.5),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, width))
        return dense
