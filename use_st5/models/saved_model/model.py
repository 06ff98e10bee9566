"""A text embedding of another origin as a Keras model over ids."""

from __future__ import annotations

import os
from typing import Any

import keras

from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.tokenizers.byte_tokenizer import ByteTokenizer

# Keys of the vector in the dict of outputs, in text embeddings of TensorFlow Hub.
_OUTPUTS = ("default", "outputs", "pooled_output")


@keras.saving.register_keras_serializable(package="use_st5")
class TextSavedModel(keras.Model):
    """A SavedModel from strings to vectors, trained through its own variables.

    Args:
        folder: The folder of the SavedModel.
        output_key: The output that is the vector, if the SavedModel returns a dict; None:
            "default", "outputs" or "pooled_output".

    Call arguments:
        ids: int32 `[batch, length]` of a `ByteTokenizer`, 0 = padding.
        training: Passed to the SavedModel if it has this argument.

    Returns:
        float32 `[batch, dimension]`.

    Raises:
        ValueError: The SavedModel does not turn strings into vectors, or has no trainable
            variables.
    """

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
            raise ValueError(
                f"Expected a SavedModel in {self.folder} that turns strings into vectors "
                "[batch, dimension] and can be called, found another one. use_st5.layers."
                "SavedModelLayer takes such models, with output_key and signature."
            )
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
