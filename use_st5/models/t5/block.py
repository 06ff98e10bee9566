"""One layer of a T5 stack."""

from __future__ import annotations

from typing import Any

import keras

from use_st5.layers.attention import MultiHeadAttention
from use_st5.models.t5.config import Activation
from use_st5.models.t5.feed_forward import T5FeedForward

EPSILON = 1e-6


@keras.saving.register_keras_serializable(package="use_st5")
class T5Block(keras.layers.Layer):
    """Self-attention, in a decoder attention to the encoder's output, and a feed-forward layer.

    Each is preceded by an RMS norm (in float32) and added to its input.

    Args:
        num_heads: Attention heads.
        key_value_dim: Width of a head.
        intermediate_dim: Width of the feed-forward layer.
        activation: Of the feed-forward layer, "relu" or "gated_gelu".
        cross_attention: Whether it is a decoder's.
        dropout: Rate, in training.

    Call arguments:
        x: `[batch, length, dim]`.
        visible: bool, True for what `x` may attend to in itself; broadcasts to
            `[batch, heads, length, length]`.
        bias: float32, added to the scores of the self-attention; broadcasts likewise.
        context: The encoder's output, `[batch, context_length, dim]`; a decoder's alone.
        context_visible: bool, broadcasts to `[batch, heads, length, context_length]`.
        training: Whether dropout acts.

    Returns:
        `[batch, length, dim]`.
    """

    def __init__(
        self,
        num_heads: int,
        key_value_dim: int,
        intermediate_dim: int,
        *,
        activation: Activation = "relu",
        cross_attention: bool = False,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads
        self.key_value_dim = key_value_dim
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.cross_attention = cross_attention
        self.dropout = dropout
        policy = self.dtype_policy
        self.attention_norm = rms_norm("attention_norm", policy)
        self.attention = MultiHeadAttention(
            num_heads, key_value_dim, dropout=dropout, dtype=policy, name="attention"
        )
        if cross_attention:
            self.cross_norm = rms_norm("cross_norm", policy)
            self.cross = MultiHeadAttention(
                num_heads, key_value_dim, dropout=dropout, dtype=policy, name="cross"
            )
        self.feed_forward_norm = rms_norm("feed_forward_norm", policy)
        self.feed_forward = T5FeedForward(
            intermediate_dim,
            activation=activation,
            dropout=dropout,
            dtype=policy,
            name="feed_forward",
        )
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        shape = (None, None, input_shape[-1])
        for layer in (self.attention_norm, self.attention):
            layer.build(shape)
        if self.cross_attention:
            self.cross_norm.build(shape)
            self.cross.build(shape)
        for layer in (self.feed_forward_norm, self.feed_forward):
            layer.build(shape)
        self.built = True

    def call(
        self,
        x: Any,
        visible: Any = None,
        bias: Any = None,
        context: Any = None,
        context_visible: Any = None,
        training: bool = False,
    ) -> Any:
        attended = self.attention(
            self.attention_norm(x), visible=visible, bias=bias, training=training
        )
        x = x + self.dropout_layer(attended, training=training)
        return self._after_self_attention(x, context, context_visible, training)

    def of_one_token(
        self, x: Any, context: Any, context_visible: Any, training: bool = False
    ) -> Any:
        """`call` for a length of 1, exactly, without scores: a lone token attends to itself.

        Args:
            x: `[batch, 1, dim]`.
            context: The encoder's output, `[batch, context_length, dim]`.
            context_visible: As in `call`.
            training: Whether dropout acts.

        Returns:
            `[batch, 1, dim]`.
        """
        attended = self.attention.of_one_token(self.attention_norm(x))
        x = x + self.dropout_layer(attended, training=training)
        return self._after_self_attention(x, context, context_visible, training)

    def _after_self_attention(
        self, x: Any, context: Any, context_visible: Any, training: bool
    ) -> Any:
        if self.cross_attention:
            attended = self.cross(
                self.cross_norm(x), context, visible=context_visible, training=training
            )
            x = x + self.dropout_layer(attended, training=training)
        fed = self.feed_forward(self.feed_forward_norm(x), training=training)
        return x + self.dropout_layer(fed, training=training)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_value_dim": self.key_value_dim,
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "cross_attention": self.cross_attention,
            "dropout": self.dropout,
        }


def rms_norm(name: str, policy: Any) -> keras.layers.RMSNormalization:
    """T5's layer norm: no mean, no bias, epsilon 1e-6, computed in float32."""
    return keras.layers.RMSNormalization(epsilon=EPSILON, dtype=policy, name=name)
