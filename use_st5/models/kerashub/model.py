"""A text embedder of KerasHub as a Keras model over ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from use_st5.tokenizers.kerashub_tokenizer import kerashub_class

# Settings of a backbone that are not saved, because a copy has its own.
_NOT_KEPT = ("name", "trainable", "dtype")


@keras.saving.register_keras_serializable(package="use_st5")
class KerasHubEncoder(keras.Model):
    """A `keras_hub.models.TextEmbedder` without its preprocessor.

    Args:
        embedder: The text embedder, or its entry in `get_config`, from which one with initial
            weights is built.
        padding: KerasHub's id of padding.

    Call arguments:
        ids: int32 `[batch, length]` of a `KerasHubTokenizer`, 0 = padding.
        training: Whether dropout acts.

    Returns:
        float32 `[batch, dimension]`.

    Raises:
        ImportError: keras-hub is missing.
        ValueError: The configuration names classes that keras-hub does not have.
    """

    def __init__(self, embedder: Any, padding: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(embedder, Mapping):
            config, where = embedder, "use_st5.json"
            backbone = kerashub_class(config["backbone_kind"], "Backbone", where)
            embedder = kerashub_class(config["kind"], "TextEmbedder", where)(
                backbone.from_config({**config["backbone"], "dtype": self.dtype_policy}),
                pooling_mode=config["pooling_mode"],
                normalize=config["normalize"],
            )
        self.embedder = embedder
        self.padding = padding
        self.dimension: int = embedder.output.shape[-1]

    def build(self, input_shape: Any = None) -> None:
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        mask = ids > 0
        features = {
            "token_ids": ops.where(mask, ids - 1, self.padding),
            "padding_mask": ops.cast(mask, "int32"),
            "segment_ids": ops.zeros_like(ids),
        }
        inputs = {name: features[name] for name in self.embedder.input}
        return ops.cast(self.embedder(inputs, training=training), "float32")

    def get_config(self) -> dict[str, Any]:
        embedder, backbone = self.embedder, self.embedder.backbone
        shape = {key: value for key, value in backbone.get_config().items() if key not in _NOT_KEPT}
        return {
            **super().get_config(),
            "embedder": {
                "kind": type(embedder).__name__,
                "pooling_mode": embedder.pooling_mode,
                "normalize": embedder.normalize,
                "backbone_kind": type(backbone).__name__,
                "backbone": shape,
            },
            "padding": self.padding,
        }
