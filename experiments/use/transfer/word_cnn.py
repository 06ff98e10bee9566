"""A convolutional network over words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from experiments.use.transfer.word_embedding import WordEmbedding
from use_st5.layers import masked_max


@keras.saving.register_keras_serializable(package="use_st5")
class WordCNN(keras.layers.Layer):
    """Parallel convolutions over the words of a text, with the maximum of each filter.

    Kim 2014, "Convolutional Neural Networks for Sentence Classification" (EMNLP, D14-1181), section
    2; the word-level CNN of the USE paper's baselines. Beyond the ends of a text, a window reads
    zeros, so that the length of a batch has no influence. A text without words gives zeros.

    Args:
        embedding: The words.
        filters: Filters of each width; 100 in Kim 2014.
        widths: Words in a window; 3, 4 and 5 in Kim 2014.

    Call arguments:
        ids: int32 `[batch, length]`, 0 = padding, as `embedding.ids` makes them.

    Returns:
        float32 `[batch, filters · widths]`, at least 0.
    """

    def __init__(
        self,
        embedding: WordEmbedding,
        *,
        filters: int = 100,
        widths: Sequence[int] = (3, 4, 5),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.embedding = embedding
        self.filters = filters
        self.widths = tuple(widths)
        self.convolutions = [
            keras.layers.Conv1D(
                filters, width, padding="same", activation="relu", name=f"width_{width}"
            )
            for width in self.widths
        ]

    def build(self, _input_shape: Any = None) -> None:
        if not self.embedding.built:  # it is built already if the layer was loaded from a file
            self.embedding.build()
        for convolution in self.convolutions:
            convolution.build((None, None, self.embedding.dimension))

    def call(self, ids: Any) -> Any:
        words = ids > 0
        vectors = ops.where(words[..., None], self.embedding(ids), 0.0)
        highest = [masked_max(convolution(vectors), words) for convolution in self.convolutions]
        return ops.concatenate(highest, axis=-1)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, int]:
        return (input_shape[0], self.filters * len(self.widths))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "filters": self.filters,
            "widths": [*self.widths],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> WordCNN:
        embedding = keras.saving.deserialize_keras_object(config.pop("embedding"))
        return cls(embedding, **config)
