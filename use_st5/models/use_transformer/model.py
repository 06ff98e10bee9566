"""The Universal Sentence Encoder, Transformer variant."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
from keras import ops

from use_st5.layers.attention import Packing, TransformerBlock, layer_norm
from use_st5.layers.pooling import l2_normalize, masked_scaled_sum
from use_st5.layers.positions import sinusoidal_positions
from use_st5.layers.random_normal import RandomNormal
from use_st5.models.encoder_model import EncoderModel


@dataclasses.dataclass(frozen=True)
class USETransformerConfig:
    """Shape of a Universal Sentence Encoder of the Transformer kind.

    Attributes:
        num_embeddings: Rows of the table: padding, the empty text, words and hash buckets.
        embedding_dim: Width of the table.
        num_layers: Transformer blocks.
        hidden_dim: Width of the Transformer.
        intermediate_dim: Width of its feed-forward layers.
        num_heads: Attention heads.
        dimension: Dimension of the sentence vector. If it differs from that of the sum
            (`hidden_dim`, or twice that with `early_output`), a linear layer without bias follows.
        max_length: Tokens of a text beyond this number are not read.
        dropout: Rate in training.
        early_output: Number of a block, from 1, below the last. Its outputs are summed too, and
            this sum is concatenated with that of the last block: it contains information that the
            last block drops, and the vectors then fill more than `hidden_dim` dimensions.
    """

    num_embeddings: int
    embedding_dim: int = 320
    num_layers: int = 6
    hidden_dim: int = 512
    intermediate_dim: int = 2048
    num_heads: int = 8
    dimension: int = 512
    max_length: int = 128
    dropout: float = 0.0
    early_output: int | None = None


USE_TRANSFORMER_PRESETS: dict[str, USETransformerConfig] = {
    # universal-sentence-encoder-large/5: 147,354,880 parameters (tensorflow/hub#417), an input
    # layer 320 → 512 (#485), tensor2tensor's scopes, 128 tokens (#244). Six layers of 512 and 2,048
    # leave exactly 400,900 rows of 320, which no dump confirms.
    "use_transformer_large": USETransformerConfig(num_embeddings=400_900),
    # The shape that ships. The table has as many rows as the vocabulary: callers set
    # `num_embeddings=vocabulary.size`.
    "use_transformer_en": USETransformerConfig(
        num_embeddings=53_002,
        embedding_dim=384,
        num_layers=5,
        hidden_dim=384,
        intermediate_dim=1_152,
        num_heads=6,
        dimension=512,
        max_length=256,
        early_output=2,
    ),
}


@keras.saving.register_keras_serializable(package="use_st5")
class USETransformer(EncoderModel):
    """A Transformer encoder whose outputs are summed, divided by √length, and scaled to length 1.

    USE paper (arXiv 1803.11175), section "Transformer" and its footnote on sentence length. Compute
    time and memory of the attention grow with the square of the text's length.

    Args:
        config: The model's shape; `USETransformer.from_preset` knows the named ones.

    Call arguments:
        ids: int32 `[batch, length]` of token ids, 0 = padding, as `PieceTokenizer.padded` makes
            them.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`, rows of length 1.
    """

    config_type = USETransformerConfig
    packs = True
    presets = USE_TRANSFORMER_PRESETS

    def __init__(self, config: USETransformerConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.embedding = keras.layers.Embedding(
            config.num_embeddings,
            config.embedding_dim,
            embeddings_initializer=RandomNormal(stddev=0.05),
            dtype=policy,
            name="embedding",
        )
        self.widen = keras.layers.Dense(
            config.hidden_dim, use_bias=False, dtype=policy, name="widen"
        )
        self.blocks = [
            TransformerBlock(
                config.num_heads,
                config.intermediate_dim,
                dropout=config.dropout,
                dtype=policy,
                name=f"block_{number}",
            )
            for number in range(config.num_layers)
        ]
        self.norm = layer_norm("norm")
        self.early_norm = None if config.early_output is None else layer_norm("early_norm")
        self.dropout_layer = keras.layers.Dropout(config.dropout, dtype=policy)
        self.projection = None
        if config.dimension != self._summed_dim:
            self.projection = keras.layers.Dense(
                config.dimension, use_bias=False, dtype="float32", name="projection"
            )

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        return self.config.dimension

    @property
    def _summed_dim(self) -> int:
        return self.config.hidden_dim * (1 if self.early_norm is None else 2)

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        self.widen.build((None, None, self.config.embedding_dim))
        for layer in (*self.blocks, self.norm):
            layer.build((None, None, self.config.hidden_dim))
        if self.early_norm is not None:
            self.early_norm.build((None, None, self.config.hidden_dim))
        if self.projection is not None:
            self.projection.build((None, self._summed_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.encode_embedded(self.embedding(ids), ids, training=training)

    def encode_embedded(
        self, embedded: Any, ids: Any, *, packed: bool = False, training: bool = False
    ) -> Any:
        """Computes the sentence vectors from `embedded`, the token table's rows for `ids`.

        With `packed`, padding is not computed. Compiled programs do not allow this.
        """
        tokens, length = ids > 0, ops.shape(ids)[1]
        packing = Packing.of(tokens, self.config.num_heads) if packed else None
        positions = sinusoidal_positions(length, self.config.hidden_dim)
        if packing is not None:
            embedded = packing.pack(embedded)
            positions = ops.take(positions, packing.rows % length, axis=0)
        x = self.widen(embedded)
        x = self.dropout_layer(x + ops.cast(positions, x.dtype), training=training)
        visible, outputs = ops.expand_dims(tokens, (1, 2)), []
        for number, block in enumerate(self.blocks, start=1):
            x = block(x, visible=visible, packing=packing, training=training)
            if self.early_norm is not None and number == self.config.early_output:
                outputs.append(self.early_norm(x))
        outputs.append(self.norm(x))
        if packing is not None:
            outputs = [packing.unpack(each) for each in outputs]
        sums = [masked_scaled_sum(each, tokens) for each in outputs]
        vector = ops.concatenate(sums, axis=-1)
        if self.projection is not None:
            vector = self.projection(vector)
        return l2_normalize(vector)
