"""The family of SavedModels of other origins, such as those of TensorFlow Hub."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, ClassVar

import keras

from use_st5.export.encoder_graph import TEXTS, EncoderGraph, graph_of
from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.models.family import Family
from use_st5.tokenizers.byte_tokenizer import ByteTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer

# Keys of the vector in the dict of outputs, in text embeddings of TensorFlow Hub.
_OUTPUTS = ("default", "outputs", "pooled_output")


@keras.saving.register_keras_serializable(package="use_st5")
class TextSavedModel(keras.Model):
    """A SavedModel from strings (ids of a `ByteTokenizer`) to vectors, trained as it is."""

    def __init__(
        self, folder: str | os.PathLike[str], output_key: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.folder = os.fspath(folder)
        self.output_key = output_key
        keys = (None, *_OUTPUTS) if output_key is None else (output_key,)
        for key in keys:
            layer = SavedModelLayer(self.folder, trainable=True, output_key=key, dtype="float32")
            if layer.dimension is not None:
                break
        else:
            expected = "a SavedModel that turns strings into vectors [batch, dimension]"
            raise ValueError(f"{self.folder}: expected {expected}, found another one.")
        self.encoder = layer
        self.dimension: int = layer.dimension

    def build(self, input_shape: Any = None) -> None:
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        return self.encoder(ByteTokenizer.strings(ids), training=training)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "folder": self.folder,
            "output_key": self.output_key,
        }


class SavedModelFamily(Family):
    """Text embeddings with unknown layers; they are trained as they are."""

    name = "saved_model"
    model_types = (TextSavedModel,)
    presets: ClassVar = {}
    tokenizers: ClassVar = {ByteTokenizer.kind: ByteTokenizer}
    learning_rates: ClassVar = {"": 1e-4}
    compiles = False  # XLA does not support strings.
    rebuilt = False

    def graph(
        self,
        model: TextSavedModel,
        tokenizer: Tokenizer,
        *,
        precision: str,
        max_length: int | None,
    ) -> EncoderGraph:
        """The graph of the SavedModel itself, which reads strings."""
        if max_length is not None:
            raise ValueError(f"A SavedModel has no limit: max_length={max_length} must be None.")
        graph = EncoderGraph.of_model(
            model,
            tokenizer,
            max_length=None,
            embed_text=model.encoder.vectors,
            embed_ids=lambda ids, training: model.encoder.vectors(
                ByteTokenizer.strings(ids), training
            ),
            preprocess=graph_of(tokenizer.padded, TEXTS[1]),
        )
        # Tracks the tables and assets of the SavedModel too.
        return dataclasses.replace(
            graph, tracked={**graph.tracked, "saved_model": model.encoder.model}
        )


FAMILY = SavedModelFamily()
