"""The layers of a T5 encoder or decoder."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.layers.relative_position_bias import RelativePositionBias
from use_st5.models.t5.block import T5Block, rms_norm
from use_st5.models.t5.config import Activation


@keras.saving.register_keras_serializable(package="use_st5")
class T5Stack(keras.layers.Layer):
    """T5's encoder, or its decoder: blocks that share one relative position bias, and a norm.

    Args:
        num_layers: Number of blocks.
        num_heads: Attention heads.
        key_value_dim: Width of a head.
        intermediate_dim: Width of the feed-forward layers.
        activation: Of the feed-forward layers, "relu" or "gated_gelu".
        decoder: Whether positions see only those before them, and an encoder's output.
        num_buckets: Buckets of the relative position bias.
        max_distance: Distance, in tokens, from which on all share a bucket.
        dropout: Rate, in training.

    Call arguments:
        x: Embeddings, `[batch, length, dim]`; they are not scaled.
        tokens: bool `[batch, length]`, True for tokens, False for padding; None: no padding.
        context: The encoder's output, `[batch, context_length, dim]`; a decoder's alone.
        context_tokens: bool `[batch, context_length]`.
        training: Whether dropout acts.

    Returns:
        `[batch, length, dim]`. Rows at padding hold numbers without meaning.
    """

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        key_value_dim: int,
        intermediate_dim: int,
        *,
        activation: Activation = "relu",
        decoder: bool = False,
        num_buckets: int = 32,
        max_distance: int = 128,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.decoder = decoder
        self.settings: dict[str, Any] = {
            "num_layers": num_layers,
            "num_heads": num_heads,
            "key_value_dim": key_value_dim,
            "intermediate_dim": intermediate_dim,
            "activation": activation,
            "decoder": decoder,
            "num_buckets": num_buckets,
            "max_distance": max_distance,
            "dropout": dropout,
        }
        policy = self.dtype_policy
        self.blocks = [
            T5Block(
                num_heads,
                key_value_dim,
                intermediate_dim,
                activation=activation,
                cross_attention=decoder,
                dropout=dropout,
                dtype=policy,
                name=f"block_{number}",
            )
            for number in range(num_layers)
        ]
        self.norm = rms_norm("norm", policy)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)

    def build(self, input_shape: tuple[Any, ...]) -> None:
        dim = input_shape[-1]
        self.position_bias = RelativePositionBias(
            self.settings["num_heads"],
            bidirectional=not self.decoder,
            num_buckets=self.settings["num_buckets"],
            max_distance=self.settings["max_distance"],
            stddev=dim**-0.5,
            dtype=self.dtype_policy,
            name="position_bias",
        )
        self.position_bias.build()
        for layer in (*self.blocks, self.norm):
            layer.build((None, None, dim))
        self.built = True

    def call(
        self,
        x: Any,
        tokens: Any = None,
        context: Any = None,
        context_tokens: Any = None,
        training: bool = False,
    ) -> Any:
        length = ops.shape(x)[1]
        bias = self.position_bias(query_length=length, key_length=length)
        visible = _of_keys(tokens)
        if self.decoder:
            before = ops.tril(ops.ones((length, length), "bool"))[None, None]
            visible = before if visible is None else ops.logical_and(visible, before)
        x = self.dropout_layer(x, training=training)
        for block in self.blocks:
            x = block(
                x,
                visible=visible,
                bias=bias,
                context=context,
                context_visible=_of_keys(context_tokens),
                training=training,
            )
        return self.dropout_layer(self.norm(x), training=training)

    def of_one_token(
        self, x: Any, context: Any, context_tokens: Any = None, training: bool = False
    ) -> Any:
        """A decoder's output for one token, without its self-attention's scores.

        Args:
            x: `[batch, 1, dim]`.
            context: The encoder's output, `[batch, context_length, dim]`.
            context_tokens: bool `[batch, context_length]`.
            training: Whether dropout acts.

        Returns:
            `[batch, 1, dim]`, what `call` gives.
        """
        x = self.dropout_layer(x, training=training)
        for block in self.blocks:
            x = block.of_one_token(x, context, _of_keys(context_tokens), training=training)
        return self.dropout_layer(self.norm(x), training=training)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def _of_keys(tokens: Any) -> Any:
    """`[batch, keys]` → `[batch, 1, 1, keys]`."""
    return None if tokens is None else ops.expand_dims(tokens, (1, 2))
