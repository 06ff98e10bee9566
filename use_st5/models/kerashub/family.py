"""The family of KerasHub's text embedders: Gemma, Qwen, BERT and XLM-RoBERTa."""

from __future__ import annotations

from typing import Any, ClassVar

import keras

from use_st5._imports import require
from use_st5.export.encoder_graph import EncoderGraph, padded_graph
from use_st5.models.family import Family
from use_st5.models.kerashub.model import KerasHubEncoder
from use_st5.tokenizers.kerashub_tokenizer import KerasHubTokenizer
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
        kinds = (keras.layers.Dense, keras.layers.EinsumDense)
        layers = model.embedder.backbone._flatten_layers(include_self=False)
        return {each.path: _Adaptable(each) for each in layers if isinstance(each, kinds)}

    def lora_base(self, model: KerasHubEncoder) -> dict[str, Any]:
        """The shape of the backbone."""
        return model.get_config()["embedder"]["backbone"]


class _Adaptable:
    """A linear layer of Keras whose adapter can be merged, like that of `LoRADense`."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layer, name)

    def merge_lora(self) -> None:
        """Adds the adapter to the kernel, and removes it."""
        layer = self._layer
        layer._kernel.assign(layer.kernel)
        del layer.lora_kernel_a, layer.lora_kernel_b
        layer.lora_enabled = False
        layer.lora_rank = layer.lora_alpha = None


def read_text_embedder(embedder: Any) -> tuple[KerasHubEncoder, KerasHubTokenizer, int]:
    """The model, the tokenizer and the maximum length of a text embedder of KerasHub.

    Raises:
        ImportError: keras-hub is missing.
        TypeError: The object is not a text embedder of KerasHub, or has no preprocessor.
    """
    hub = require("keras_hub", "kerashub")
    preprocessor = getattr(embedder, "preprocessor", None)
    if not isinstance(embedder, hub.models.TextEmbedder) or preprocessor is None:
        raise TypeError(
            "Expected a keras_hub.models.TextEmbedder with a preprocessor, received "
            f"{type(embedder).__name__}. keras_hub.models.TextEmbedder.from_preset makes one."
        )
    length = preprocessor.sequence_length
    tokenizer = KerasHubTokenizer(preprocessor)
    model = KerasHubEncoder(embedder, tokenizer.padding, dtype=embedder.backbone.dtype_policy)
    return model, tokenizer, length


FAMILY = KerasHubFamily()
