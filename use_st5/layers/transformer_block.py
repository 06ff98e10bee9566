"""One layer of a Transformer encoder."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.layers.attention import MultiHeadAttention

_EPSILON = 1e-6


@keras.saving.register_keras_serializable(package="use_st5")
class TransformerBlock(keras.layers.Layer):
    """Self-attention and a feed-forward layer, each with a pre-norm and a residual connection.

    The architecture is that of tensor2tensor, which the published USE graph uses: attention without
    biases, and a feed-forward layer (relu) with biases.

    Args:
        num_heads: Number of attention heads; must divide the width of the model.
        intermediate_dim: Width of the feed-forward layer.
        dropout: Dropout rate on the attention weights, inside the feed-forward layer and before
            each addition.

    Call arguments:
        x: `[batch, length, dim]`.
        visible: bool, True for tokens; broadcasts to `[batch, heads, length, length]`.
        training: Whether to apply dropout.

    Returns:
        `[batch, length, dim]`.
    """

    def __init__(
        self, num_heads: int, intermediate_dim: int, *, dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.attention_norm = layer_norm("attention_norm")
        self.feed_forward_norm = layer_norm("feed_forward_norm")
        self.inner = keras.layers.Dense(
            intermediate_dim, activation="relu", dtype=policy, name="inner"
        )
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        dim = input_shape[-1]
        self.attention = MultiHeadAttention(
            self.num_heads,
            dim // self.num_heads,
            scaled=True,
            dropout=self.dropout,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.outer = keras.layers.Dense(dim, dtype=self.dtype_policy, name="outer")
        shape = (None, None, dim)
        for layer in (self.attention_norm, self.attention, self.feed_forward_norm, self.inner):
            layer.build(shape)
        self.outer.build((None, None, self.intermediate_dim))
        self.built = True

    def call(self, x: Any, visible: Any = None, training: bool = False) -> Any:
        attended = self.attention(self.attention_norm(x), visible=visible, training=training)
        x = x + self.dropout_layer(attended, training=training)
        hidden = self.dropout_layer(self.inner(self.feed_forward_norm(x)), training=training)
        return x + self.dropout_layer(self.outer(hidden), training=training)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
        }


def layer_norm(name: str) -> keras.layers.LayerNormalization:
    """A layer norm with scale and shift, computed in float32."""
    return keras.layers.LayerNormalization(epsilon=_EPSILON, dtype="float32", name=name)
