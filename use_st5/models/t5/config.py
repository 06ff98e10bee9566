"""The shape of a T5 model, the published sizes, and two of the house's own."""

from __future__ import annotations

import dataclasses
from typing import Literal

# Rows of the vocabulary: 32,000 pieces and 100 sentinels, rounded up to a multiple of 128.
T5_ROWS = 32_128
_MT5_ROWS = 250_112

Activation = Literal["relu", "gated_gelu"]


@dataclasses.dataclass(frozen=True)
class T5Config:
    """Shape of a T5 encoder and decoder.

    Attributes:
        vocabulary_size: Rows of the token table.
        num_layers: Blocks of the encoder, and of the decoder.
        hidden_dim: Width of the model.
        intermediate_dim: Width of the feed-forward layers.
        num_heads: Attention heads.
        key_value_dim: Width of a head; `num_heads · key_value_dim` may differ from `hidden_dim`.
        activation: "relu" for T5 1.0, "gated_gelu" for T5 1.1 and mT5.
        tied_softmax: Whether the token table is the decoder's output layer too (T5 1.0).
        scaled_softmax: Whether the decoder's output is divided by √hidden_dim before the output
            layer (T5 1.0).
        num_decoder_layers: Blocks of the decoder; None: as many as the encoder's.
        num_buckets: Buckets of the relative position bias.
        max_distance: Distance, in tokens, from which on all share a bucket.
        dropout: Rate in training. 0 as in Sentence-T5's dual encoder; T5's pre-training had 0.1
            for 1.0 and 0 for 1.1.
    """

    vocabulary_size: int
    num_layers: int
    hidden_dim: int
    intermediate_dim: int
    num_heads: int
    key_value_dim: int = 64
    activation: Activation = "relu"
    tied_softmax: bool = True
    scaled_softmax: bool = True
    num_decoder_layers: int | None = None
    num_buckets: int = 32
    max_distance: int = 128
    dropout: float = 0.0

    @property
    def encoder_parameters(self) -> int:
        """Numbers in the token table and the encoder."""
        norms = (2 * self.num_layers + 1) * self.hidden_dim
        blocks = self.num_layers * (self._attention_parameters + self._feed_forward_parameters)
        table = self.vocabulary_size * self.hidden_dim
        return table + blocks + norms + self.num_buckets * self.num_heads

    @property
    def decoder_parameters(self) -> int:
        """Numbers in the decoder, without the token table and the output layer."""
        layers = self.decoder_layers
        norms = (3 * layers + 1) * self.hidden_dim
        blocks = layers * (2 * self._attention_parameters + self._feed_forward_parameters)
        return blocks + norms + self.num_buckets * self.num_heads

    @property
    def decoder_layers(self) -> int:
        """Blocks of the decoder."""
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers

    @property
    def _attention_parameters(self) -> int:
        return 4 * self.hidden_dim * self.num_heads * self.key_value_dim

    @property
    def _feed_forward_parameters(self) -> int:
        matrices = 2 if self.activation == "relu" else 3
        return matrices * self.hidden_dim * self.intermediate_dim


def _gated(rows: int, layers: int, dim: int, intermediate_dim: int, heads: int) -> T5Config:
    return T5Config(
        rows,
        layers,
        dim,
        intermediate_dim,
        heads,
        activation="gated_gelu",
        tied_softmax=False,
        scaled_softmax=False,
    )


# t5x/examples/t5/{t5_1_0,t5_1_1,mt5}/*.gin.
T5_PRESETS: dict[str, T5Config] = {
    "t5_small": T5Config(T5_ROWS, 6, 512, 2048, 8),
    "t5_base": T5Config(T5_ROWS, 12, 768, 3072, 12),
    "t5_large": T5Config(T5_ROWS, 24, 1024, 4096, 16),
    "t5_3b": T5Config(T5_ROWS, 24, 1024, 16_384, 32, 128),
    "t5_11b": T5Config(T5_ROWS, 24, 1024, 65_536, 128, 128),
    "t5_1_1_small": _gated(T5_ROWS, 8, 512, 1024, 6),
    "t5_1_1_base": _gated(T5_ROWS, 12, 768, 2048, 12),
    "t5_1_1_large": _gated(T5_ROWS, 24, 1024, 2816, 16),
    "t5_1_1_xl": _gated(T5_ROWS, 24, 2048, 5120, 32),
    "t5_1_1_xxl": _gated(T5_ROWS, 24, 4096, 10_240, 64),
    "mt5_small": _gated(_MT5_ROWS, 8, 512, 1024, 6),
    "mt5_base": _gated(_MT5_ROWS, 12, 768, 2048, 12),
    "mt5_large": _gated(_MT5_ROWS, 24, 1024, 2816, 16),
    "mt5_xl": _gated(_MT5_ROWS, 24, 2048, 5120, 32),
    "mt5_xxl": _gated(_MT5_ROWS, 24, 4096, 10_240, 64),
    # Ours, T5 1.0's layout for two cores (recipe `pretrain_t5`): the encoder takes 32 MB in
    # float32, and three quarters of that are the token table.
    "t5_mini_en": T5Config(T5_ROWS, 4, 192, 768, 3, num_decoder_layers=2),
    # Of the recipe `st5_small_en`: 20 MB in float32 beside a table that is stored in int8.
    "st5_small_en": T5Config(T5_ROWS, 4, 320, 1280, 5),
}
