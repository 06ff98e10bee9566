"""The Universal Sentence Encoder, deep averaging variant (USE-DAN)."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras

from use_st5.layers.deep_averaging import NGramEmbedding, ResidualFeedForward
from use_st5.layers.pooling import L2Normalize
from use_st5.models.encoder_model import EncoderModel


@dataclasses.dataclass(frozen=True)
class USEDANConfig:
    """Shape of a Universal Sentence Encoder of the deep-averaging kind.

    Attributes:
        num_embeddings: Rows of the n-gram table: padding, the empty text, words, bi-grams and
            hash buckets.
        embedding_dim: Width of the n-gram table.
        hidden_dims: Widths of the bias-free dense layers, two to a residual block; the last one is
            the dimension of the sentence vector.
        activation: Keras name of the activation of the dense layers.
        term_dropout: Share of n-grams left out of the mean in training.
        dropout: Rate on each block's nonlinear branch in training.
    """

    num_embeddings: int
    embedding_dim: int = 320
    hidden_dims: tuple[int, ...] = (320, 320, 512, 512)
    activation: str = "tanh"
    term_dropout: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        # A saved configuration has a list.
        object.__setattr__(self, "hidden_dims", tuple(self.hidden_dims))

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        return self.hidden_dims[-1]


USE_DAN_PRESETS: dict[str, USEDANConfig] = {
    # universal-sentence-encoder/4: 256,797,824 parameters. Table of 30 shards x 26,667 rows x 320
    # (tensorflow/hub#894), layers from the variable names and shapes in tensorflow/hub#446 and
    # #489. The activation is not visible in any dump; an older graph has tanh.
    "use_dan_v4": USEDANConfig(num_embeddings=30 * 26_667),
    # Our shape, small enough to ship: the published network on a tenth of the rows, but wider.
    "use_dan_en": USEDANConfig(
        num_embeddings=90_202, embedding_dim=384, hidden_dims=(384, 384, 512, 512)
    ),
}


@keras.saving.register_keras_serializable(package="use_st5")
class USEDAN(EncoderModel):
    """Averages word and bi-gram embeddings; a network turns the mean into a unit vector.

    USE paper (arXiv 1803.11175), section "Deep Averaging Network"; the layout of the layers is that
    of the published graph (see `use_st5.models.use_dan.model`). Compute time is linear in the
    text's length.

    Args:
        config: The model's shape; `USEDAN.from_preset` knows the named ones.

    Call arguments:
        ids: int32 `[batch, length]` of n-gram ids, 0 = padding, as `NGramTokenizer.padded` makes
            them.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`, rows of length 1.

    Examples:
        >>> model = USEDAN.from_preset("use_dan_en", num_embeddings=1000)
        >>> model(keras.ops.array([[5, 17, 230, 0]])).shape
        TensorShape([1, 512])
    """

    config_type = USEDANConfig
    presets = USE_DAN_PRESETS

    def __init__(self, config: USEDANConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.embedding = NGramEmbedding(
            config.num_embeddings,
            config.embedding_dim,
            term_dropout=config.term_dropout,
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.network = keras.Sequential(
            [
                ResidualFeedForward(
                    config.hidden_dims,
                    activation=config.activation,
                    dropout=config.dropout,
                    dtype=self.dtype_policy,
                    name="feed_forward",
                ),
                L2Normalize(name="l2_normalize"),
            ],
            name="network",
        )
        self.network.dtype_policy = self.dtype_policy  # Sequential takes no dtype.

    @property
    def dimension(self) -> int:
        """Dimension of the sentence vector."""
        return self.config.dimension

    def build(self, _input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        self.network.build((None, self.config.embedding_dim))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.network(self.embedding(ids, training=training), training=training)
