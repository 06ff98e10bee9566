"""Input layer of a deep averaging network: the mean of a text's n-gram embeddings."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from use_st5.layers.random_normal import RandomNormal


@keras.saving.register_keras_serializable(package="use_st5")
class NGramEmbedding(keras.layers.Layer):
    """Averages the embeddings of the words and bi-grams of each text.

    USE paper, section "Deep Averaging Network": "input embeddings for words and bi-grams are first
    averaged together". Words and bi-grams share one table, as in the published graph. Id 0 is
    padding and is not counted.

    Args:
        num_embeddings: Rows of the table, including the padding row.
        embedding_dim: Width of the table.
        term_dropout: Probability that training leaves an n-gram out of the mean (word dropout,
            Iyyer et al. 2015, section 3).
        initializer_stddev: Standard deviation of the initial embeddings.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding.
        training: Whether to apply `term_dropout`.

    Returns:
        float32 `[batch, embedding_dim]`; zero for a row that contains only padding.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        term_dropout: float = 0.0,
        initializer_stddev: float = 0.05,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.term_dropout = term_dropout
        self.initializer_stddev = initializer_stddev
        self.seed_generator = keras.random.SeedGenerator() if term_dropout else None

    def build(self, _input_shape: Any = None) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.num_embeddings, self.embedding_dim),
            initializer=RandomNormal(stddev=self.initializer_stddev),
        )

    def call(self, ids: Any, training: bool = False) -> Any:
        counted = ids > 0
        if training and self.term_dropout:
            draw = keras.random.uniform(ops.shape(ids), dtype="float32", seed=self.seed_generator)
            counted = ops.logical_and(counted, draw >= self.term_dropout)
        vectors = ops.cast(ops.take(self.embeddings, ids, axis=0), "float32")
        total = ops.sum(ops.where(ops.expand_dims(counted, -1), vectors, 0.0), axis=1)
        count = ops.sum(ops.cast(counted, "float32"), axis=1, keepdims=True)
        return total / ops.maximum(count, 1.0)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.embedding_dim)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_embeddings": self.num_embeddings,
            "embedding_dim": self.embedding_dim,
            "term_dropout": self.term_dropout,
            "initializer_stddev": self.initializer_stddev,
        }
