"""One layer of a BERT."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from use_st5.layers.attention import MultiHeadAttention
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.packing import Packing
from use_st5.layers.random_normal import RandomNormal
from use_st5.models.bert.config import BertConfig

# Of all initial weights (Devlin et al. 2019, `initializer_range` of the published settings).
STDDEV = 0.02


class BertBlock(keras.layers.Layer):
    """Self-attention and a feed-forward layer, each added to its input before a layer norm.

    What is added and the norms are computed in float32.

    Args:
        config: The shape of the model.

    Call arguments:
        x: float32 `[batch, length, hidden_dim]`.
        bias: float32, added to the scores of the attention; broadcasts to
            `[batch, heads, length, length]`.
        packing: Where `x` is `[tokens, hidden_dim]`, packed so.
        training: Whether dropout acts.

    Returns:
        float32, of the shape of `x`.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.attention = MultiHeadAttention(
            config.num_heads,
            config.hidden_dim // config.num_heads,
            scaled=True,
            use_bias=True,
            stddev=STDDEV,
            dropout=config.attention_dropout,
            dtype=policy,
            name="attention",
        )
        self.attention_norm = layer_norm(config, "attention_norm")
        self.inner = dense(
            config.intermediate_dim, "inner", activation=activation_of(config), dtype=policy
        )
        self.outer = dense(config.hidden_dim, "outer", dtype=policy)
        self.output_norm = layer_norm(config, "output_norm")
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype="float32")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        shape = (None, None, self.config.hidden_dim)
        for layer in (self.attention, self.attention_norm, self.inner, self.output_norm):
            layer.build(shape)
        self.outer.build((None, None, self.config.intermediate_dim))
        self.built = True

    def call(
        self, x: Any, bias: Any = None, packing: Packing | None = None, training: bool = False
    ) -> Any:
        attended = self.attention(x, bias=bias, packing=packing, training=training)
        x = self.attention_norm(x + self._dropped(attended, training))
        return self.output_norm(x + self._dropped(self.outer(self.inner(x)), training))

    @property
    def linear_layers(self) -> dict[str, LoRADense]:
        """Role → layer, for adapters."""
        return {**self.attention.linear_layers, "inner": self.inner, "outer": self.outer}

    def _dropped(self, x: Any, training: bool) -> Any:
        return self.dropout_layer(ops.cast(x, "float32"), training=training)


def activation_of(config: BertConfig) -> Callable[[Any], Any]:
    """The activation of the feed-forward layers."""
    approximate = config.activation == "gelu_tanh"
    return functools.partial(ops.gelu, approximate=True) if approximate else _exact_gelu


def _exact_gelu(x: Any) -> Any:
    """`x·Φ(x)` by `erf`: Keras's own is `erfc` under TensorFlow, which tf2onnx does not know."""
    half = ops.cast(0.5, x.dtype)
    return half * x * (1 + ops.erf(x * ops.cast(0.5**0.5, x.dtype)))


def dense(
    units: int, name: str, *, activation: Callable[[Any], Any] | None = None, dtype: Any
) -> LoRADense:
    """A linear layer with a bias and BERT's initial weights."""
    return LoRADense(
        units,
        activation=activation,
        kernel_initializer=RandomNormal(stddev=STDDEV),
        dtype=dtype,
        name=name,
    )


def layer_norm(config: BertConfig, name: str) -> keras.layers.LayerNormalization:
    """A layer norm with scale and shift, computed in float32."""
    return keras.layers.LayerNormalization(
        epsilon=config.layer_norm_epsilon, dtype="float32", name=name
    )
