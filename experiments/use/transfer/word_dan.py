"""A deep averaging network over words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from experiments.use.transfer.word_embedding import WordEmbedding


@keras.saving.register_keras_serializable(package="use_st5")
class WordDAN(keras.layers.Layer):
    """The mean of a text's word vectors through dense layers.

    Iyyer et al. 2015, "Deep Unordered Composition Rivals Syntactic Methods for Text Classification"
    (ACL, P15-1162), section 3; the word-level DAN of the USE paper's baselines. It does not see the
    order of words.

    Args:
        embedding: The words.
        hidden_units: Width of each dense layer; if empty, the result is the mean.
        word_dropout: Share of the words left out of the mean in training; 0.3 in Iyyer et al.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, as `embedding.ids` makes them.
        training: Whether words are dropped.

    Returns:
        float32 `[batch, hidden_units[-1]]`, or `[batch, dimension]` without dense layers.
    """

    def __init__(
        self,
        embedding: WordEmbedding,
        *,
        hidden_units: Sequence[int] = (100,),
        word_dropout: float = 0.3,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.embedding = embedding
        self.hidden_units = tuple(hidden_units)
        self.word_dropout = word_dropout
        self.dense = [
            keras.layers.Dense(units, activation="relu", name=f"dense_{number}")
            for number, units in enumerate(self.hidden_units)
        ]
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, _input_shape: Any = None) -> None:
        if not self.embedding.built:  # it is built already if the layer was loaded from a file
            self.embedding.build()
        width = self.embedding.dimension
        for dense in self.dense:
            dense.build((None, width))
            width = dense.units

    def call(self, ids: Any, training: bool = False) -> Any:
        mask = ids > 0
        if training and self.word_dropout:
            draw = keras.random.uniform(ops.shape(ids), seed=self.seed_generator)
            mask = ops.logical_and(mask, draw >= self.word_dropout)
        total = ops.sum(ops.where(mask[..., None], self.embedding(ids), 0.0), axis=1)
        count = ops.sum(ops.cast(mask, total.dtype), axis=1, keepdims=True)
        vectors = total / ops.maximum(count, 1.0)
        for dense in self.dense:
            vectors = dense(vectors)
        return vectors

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], (self.embedding.dimension, *self.hidden_units)[-1])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "hidden_units": [*self.hidden_units],
            "word_dropout": self.word_dropout,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> WordDAN:
        embedding = keras.saving.deserialize_keras_object(config.pop("embedding"))
        return cls(embedding, **config)
