"""The family of KerasHub's text embedders: Gemma, Qwen, BERT and XLM-RoBERTa."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import keras
from keras import ops

from use_st5._imports import require
from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.models.family import Family
from use_st5.tokenizers.kerashub_tokenizer import KerasHubTokenizer, kerashub_class
from use_st5.tokenizers.tokenizer import Tokenizer

# Layers of the blocks of BERT, XLM-RoBERTa and Qwen, and of Gemma's feed-forward layers.
_LINEAR = (
    "query",
    "key",
    "value",
    "attention_output",
    "feedforward_intermediate_dense",
    "feedforward_gate_dense",
    "feedforward_output_dense",
    "gating_ffw",
    "gating_ffw_2",
    "ffw_linear",
)


# Settings of a backbone that are not saved, because a copy has its own.
_NOT_KEPT = ("name", "trainable", "dtype")


@keras.saving.register_keras_serializable(package="use_st5")
class KerasHubEncoder(keras.Model):
    """A `keras_hub.models.TextEmbedder`, or one of its configuration, without preprocessor."""

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


class KerasHubFamily(Family):
    """Text embedders of KerasHub (`KerasHubEncoder`)."""

    name = "kerashub"
    model_types = (KerasHubEncoder,)
    presets: ClassVar = {}
    tokenizers: ClassVar = {KerasHubTokenizer.kind: KerasHubTokenizer}
    lora_targets: ClassVar = {"query_value": ("query", "value"), "all_linear": _LINEAR}

    def graph(
        self,
        model: KerasHubEncoder,
        tokenizer: Tokenizer,
        *,
        precision: str,
        max_length: int | None,
    ) -> EncoderGraph:
        """The graph over padded ids."""
        return padded_graph(model, tokenizer, max_length=max_length)

    def max_tokens(self, model: KerasHubEncoder) -> int | None:
        """The number of positions for which the backbone has vectors."""
        return getattr(model.embedder.backbone, "max_sequence_length", None)

    def lora_layers(self, model: KerasHubEncoder) -> dict[str, Any]:
        """The linear layers of the backbone's blocks."""
        linear = (keras.layers.Dense, keras.layers.EinsumDense)
        layers = model.embedder.backbone._flatten_layers(include_self=False)
        return {layer.path: layer for layer in layers if isinstance(layer, linear)}

    def lora_base(self, model: KerasHubEncoder) -> dict[str, Any]:
        """The shape of the backbone."""
        return model.get_config()["embedder"]["backbone"]


def read_text_embedder(embedder: Any) -> tuple[KerasHubEncoder, KerasHubTokenizer, int]:
    """The model, the tokenizer and the maximum length of a text embedder of KerasHub."""
    hub = require("keras_hub", "kerashub")
    preprocessor = getattr(embedder, "preprocessor", None)
    if not isinstance(embedder, hub.models.TextEmbedder) or preprocessor is None:
        name = type(embedder).__name__
        raise TypeError(f"Expected a TextEmbedder with a preprocessor, received a {name}.")
    length = preprocessor.sequence_length
    tokenizer = KerasHubTokenizer(preprocessor)
    model = KerasHubEncoder(embedder, tokenizer.padding, dtype=embedder.backbone.dtype_policy)
    return model, tokenizer, length


FAMILY = KerasHubFamily()
