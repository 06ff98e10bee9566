"""The Universal Sentence Encoder, deep averaging variant (USE-DAN)."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras

from use_st5.layers.l2_normalize import L2Normalize
from use_st5.layers.ngram_embedding import NGramEmbedding
from use_st5.layers.residual_feed_forward import ResidualFeedForward
from use_st5.models.use_dan.config import USE_DAN_PRESETS, USEDANConfig


@keras.saving.register_keras_serializable(package="use_st5")
class USEDAN(keras.Model):
    """Averaged word and bi-gram embeddings through a feed-forward network to a unit vector.

    USE paper (arXiv 1803.11175), section "Deep Averaging Network"; the layout of the layers is that
    of the published graph (see `use_st5.models.use_dan.config`). Compute time is linear in the
    text's length.

    Args:
        config: The model's shape; `USEDAN.from_preset` knows the named ones.

    Call arguments:
        ids: int32 `[batch, length]` of n-gram ids, 0 = padding, as `NGramVectorizer.padded` makes
            them.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`, rows of length 1.

    Example:
        >>> model = USEDAN.from_preset("use_dan_en", num_embeddings=1000)
        >>> model(keras.ops.array([[5, 17, 230, 0]])).shape
        TensorShape([1, 512])
    """

    def __init__(self, config: USEDANConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.embedding = NGramEmbedding(
            config.num_embeddings,
            config.embedding_dim,
            term_dropout=config.term_dropout,
            name="embedding",
        )
        self.network = keras.Sequential(
            [
                ResidualFeedForward(
                    config.hidden_dims,
                    activation=config.activation,
                    dropout=config.dropout,
                    name="feed_forward",
                ),
                L2Normalize(name="l2_normalize"),
            ],
            name="network",
        )

    @classmethod
    def from_preset(cls, name: str, *, dtype: Any = None, **changes: Any) -> USEDAN:
        """A freshly initialised model of a named shape.

        Args:
            name: A key of `USE_DAN_PRESETS`.
            dtype: Keras dtype policy, such as "mixed_bfloat16".
            **changes: Fields of `USEDANConfig` that differ from the preset's, such as
                `num_embeddings` for a vocabulary of another size.

        Raises:
            ValueError: The preset is unknown.
        """
        if name not in USE_DAN_PRESETS:
            raise ValueError(
                f"Unknown preset: {name!r}. Expected one of {sorted(USE_DAN_PRESETS)}."
            )
        return cls(dataclasses.replace(USE_DAN_PRESETS[name], **changes), dtype=dtype)

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

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.dimension)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> USEDAN:
        fields = dict(config.pop("config"))
        fields["hidden_dims"] = tuple(fields["hidden_dims"])
        return cls(USEDANConfig(**fields), **config)
