"""ModernBERT as a sentence encoder."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, ClassVar

import keras
from keras import ops

from use_st5.layers.attention import EXCLUDED, MultiHeadAttention, Packing
from use_st5.layers.lora_dense import LoRADense
from use_st5.layers.positions import rotary_angles
from use_st5.models.bert.model import (
    STDDEV,
    BertConfig,
    SentenceBert,
    activation_of,
    dense,
    layer_norm,
)


@dataclasses.dataclass(frozen=True)
class ModernBertConfig(BertConfig):
    """Shape of a ModernBERT (Warner et al. 2024, arXiv 2412.13663).

    The default sizes are those of answerdotai/ModernBERT-base (`config.json`).

    Attributes:
        global_every: The first block and every `global_every`-th block after it attend to all
            tokens.
        local_window: Size of the window in tokens. The other blocks attend to half of it on each
            side.
        global_theta: Base of the rotary positions in blocks that attend to all tokens.
        local_theta: The same in the other blocks.
    """

    vocabulary_size: int = 50_368
    num_layers: int = 22
    hidden_dim: int = 768
    intermediate_dim: int = 1152
    num_heads: int = 12
    max_positions: int = 8192
    num_token_types: int = 0
    layer_norm_epsilon: float = 1e-5
    dropout: float = 0.0
    attention_dropout: float = 0.0
    global_every: int = 3
    local_window: int = 128
    global_theta: float = 160_000.0
    local_theta: float = 10_000.0


# config.json of answerdotai/ModernBERT-{base,large}.
MODERNBERT_PRESETS = {
    "modernbert_base": ModernBertConfig(),
    "modernbert_large": ModernBertConfig(
        num_layers=28, hidden_dim=1024, intermediate_dim=2624, num_heads=16
    ),
}


class ModernBertBlock(keras.layers.Layer):
    """Self-attention and GeGLU (Shazeer 2020), with pre-norms, residuals and no biases."""

    def __init__(self, config: ModernBertConfig, *, first: bool, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.attention_norm = None if first else layer_norm(config, "attention_norm", center=False)
        self.attention = MultiHeadAttention(
            config.num_heads,
            config.hidden_dim // config.num_heads,
            scaled=True,
            stddev=STDDEV,
            dropout=config.attention_dropout,
            dtype=policy,
            name="attention",
        )
        self.output_norm = layer_norm(config, "output_norm", center=False)
        without_bias = partial(dense, use_bias=False, dtype=policy)
        self.inner = without_bias(
            config.intermediate_dim, "inner", activation=activation_of(config)
        )
        self.linear = without_bias(config.intermediate_dim, "linear")
        self.outer = without_bias(config.hidden_dim, "outer")
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype="float32")

    def build(self, _input_shape: Any = None) -> None:
        shape = (None, None, self.config.hidden_dim)
        for layer in (self.attention_norm, self.attention, self.output_norm):
            if layer is not None:
                layer.build(shape)
        for layer in (self.inner, self.linear):
            layer.build(shape)
        self.outer.build((None, None, self.config.intermediate_dim))
        self.built = True

    def call(
        self,
        x: Any,
        bias: Any = None,
        angles: tuple[Any, Any] | None = None,
        packing: Packing | None = None,
        training: bool = False,
    ) -> Any:
        normed = x if self.attention_norm is None else self.attention_norm(x)
        attended = self.attention(
            normed, bias=bias, packing=packing, angles=angles, training=training
        )
        x = x + self._dropped(attended, training)
        normed = self.output_norm(x)
        return x + self._dropped(self.outer(self.inner(normed) * self.linear(normed)), training)

    @property
    def linear_layers(self) -> dict[str, LoRADense]:
        """Role → layer, for adapters."""
        feed_forward_layers = {"inner": self.inner, "linear": self.linear, "outer": self.outer}
        return {**self.attention.linear_layers, **feed_forward_layers}

    def _dropped(self, x: Any, training: bool) -> Any:
        return self.dropout_layer(ops.cast(x, "float32"), training=training)


@keras.saving.register_keras_serializable(package="use_st5")
class SentenceModernBert(SentenceBert):
    """A ModernBERT whose outputs are pooled to one vector, such as modernbert-embed-base.

    Args:
        config: The shape of the ModernBERT.
        **kwargs: Arguments of `SentenceBert`, except the masked language model's head.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, with `[CLS]` and `[SEP]`. Longer rows are cut to
            `max_positions`.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.
    """

    config_type = ModernBertConfig
    presets = MODERNBERT_PRESETS
    own_layers: ClassVar = ("final_norm",)
    config: ModernBertConfig

    def __init__(self, config: ModernBertConfig, *, head: bool = False, **kwargs: Any) -> None:
        if head:
            raise ValueError("Expected no masked language model's head: ModernBERT has none here.")
        super().__init__(config, **kwargs)

    def _make_network(self) -> list[Any]:
        config = self.config
        self.embedding_norm = layer_norm(config, "embedding_norm", center=False)
        self.final_norm = layer_norm(config, "final_norm", center=False)
        return [
            ModernBertBlock(
                config, first=number == 0, dtype=self.dtype_policy, name=f"block_{number}"
            )
            for number in range(config.num_layers)
        ]

    def build(self, _input_shape: Any = None) -> None:
        self.final_norm.build((None, None, self.config.hidden_dim))
        super().build()

    def _with_positions(self, x: Any, ids: Any) -> Any:
        """Returns `x` as it is: positions rotate the queries and keys of each block."""
        return x

    def _block_inputs(self, tokens: Any) -> list[dict[str, Any]]:
        config, length = self.config, ops.shape(tokens)[1]
        width = config.hidden_dim // config.num_heads
        bias = self._score_bias(tokens)
        global_inputs = {
            "bias": bias,
            "angles": rotary_angles(length, width, config.global_theta),
        }
        # Blocks with a window hide the tokens outside of it.
        places = ops.arange(length, dtype="int32")
        outside = ops.abs(places[None, :] - places[:, None]) > config.local_window // 2
        local_inputs = {
            "bias": bias + ops.cast(outside, "float32") * EXCLUDED,
            "angles": rotary_angles(length, width, config.local_theta),
        }
        numbers = range(config.num_layers)
        return [
            local_inputs if number % config.global_every else global_inputs for number in numbers
        ]
