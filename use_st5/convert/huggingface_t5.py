"""T5, T5 1.1 and mT5 from Hugging Face's folders: `config.json` and safetensors files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from use_st5.convert.assignment import Target, assign_weights
from use_st5.convert.safetensors_source import SafetensorsSource
from use_st5.convert.t5_names import T5Names
from use_st5.convert.weight_source import WeightSource
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.sentence_t5 import Pooling, SentenceT5
from use_st5.models.t5 import T5
from use_st5.models.t5_config import T5Config

_TABLE = "shared.weight"
_COPY = "encoder.embed_tokens.weight"  # of the table, in some folders the only one
_ENCODER = {
    "position_bias": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "norm": "encoder.final_layer_norm.weight",
    "attention_norm": "encoder.block.{n}.layer.0.layer_norm.weight",
    "query": "encoder.block.{n}.layer.0.SelfAttention.q.weight",
    "key": "encoder.block.{n}.layer.0.SelfAttention.k.weight",
    "value": "encoder.block.{n}.layer.0.SelfAttention.v.weight",
    "output": "encoder.block.{n}.layer.0.SelfAttention.o.weight",
    "feed_forward_norm": "encoder.block.{n}.layer.1.layer_norm.weight",
    "inner": "encoder.block.{n}.layer.1.DenseReluDense.wi.weight",
    "gate": "encoder.block.{n}.layer.1.DenseReluDense.wi_0.weight",
    "linear": "encoder.block.{n}.layer.1.DenseReluDense.wi_1.weight",
    "outer": "encoder.block.{n}.layer.1.DenseReluDense.wo.weight",
}
_DECODER = {
    **{
        role: name.replace("encoder", "decoder").replace("layer.1", "layer.2")
        for role, name in _ENCODER.items()
    },
    "cross_norm": "decoder.block.{n}.layer.1.layer_norm.weight",
    "cross_query": "decoder.block.{n}.layer.1.EncDecAttention.q.weight",
    "cross_key": "decoder.block.{n}.layer.1.EncDecAttention.k.weight",
    "cross_value": "decoder.block.{n}.layer.1.EncDecAttention.v.weight",
    "cross_output": "decoder.block.{n}.layer.1.EncDecAttention.o.weight",
}
_NAMES = T5Names(
    table=_TABLE,
    encoder=_ENCODER,
    decoder=_DECODER,
    logits="lm_head.weight",
    # torch's dense kernels are.
    transposed=frozenset(
        {"query", "key", "value", "output", "inner", "gate", "linear", "outer", "logits"}
        | {"cross_query", "cross_key", "cross_value", "cross_output"}
    ),
)
_ACTIVATIONS = {"relu": "relu", "gated-gelu": "gated_gelu"}

# Copies of the table, and a bias that the original model never used.
_DUPLICATES = {
    _COPY,
    "decoder.embed_tokens.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
}


def read_t5_config(folder: str | os.PathLike[str]) -> T5Config:
    """The shape of a T5 from its `config.json`.

    Raises:
        FileNotFoundError: There is no `config.json`.
        ValueError: It is not that of a T5, or of a kind that is not known.
    """
    path = Path(folder, "config.json")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected the configuration of a T5, found no file.")
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        kind = settings["model_type"]
        if kind not in ("t5", "mt5"):
            raise ValueError(f"its model_type is {kind!r}, expected 't5' or 'mt5'")
        projection = settings.get("feed_forward_proj", "relu")
        if projection not in _ACTIVATIONS:
            raise ValueError(
                f"its feed_forward_proj is {projection!r}, expected one of {[*_ACTIVATIONS]}"
            )
        if (epsilon := settings.get("layer_norm_epsilon", 1e-6)) != 1e-6:
            raise ValueError(f"its layer_norm_epsilon is {epsilon}, expected 1e-6")
        tied = settings.get("tie_word_embeddings", True)
        return T5Config(
            vocabulary_size=settings["vocab_size"],
            num_layers=settings["num_layers"],
            hidden_dim=settings["d_model"],
            intermediate_dim=settings["d_ff"],
            num_heads=settings["num_heads"],
            key_value_dim=settings["d_kv"],
            activation=_ACTIVATIONS[projection],
            tied_softmax=tied,
            # transformers 5 ties what it saves, and says separately that 1.1 does not scale.
            scaled_softmax=settings.get("scale_decoder_outputs", tied),
            num_decoder_layers=settings.get("num_decoder_layers"),
            num_buckets=settings.get("relative_attention_num_buckets", 32),
            max_distance=settings.get("relative_attention_max_distance", 128),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected the configuration of a T5: {error!s}.") from error


def load_t5(
    folder: str | os.PathLike[str],
    *,
    with_decoder: bool = True,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> T5:
    """A T5 with the weights of a folder, read tensor by tensor.

    Args:
        folder: With `config.json` and safetensors files; stored in float32, bfloat16 or float16.
        with_decoder: False loads the encoder alone (a folder of `T5EncoderModel` has no more).
        dtype: Keras dtype policy of the model, such as "bfloat16".
        on_tensor: Called with the name of each tensor that is in place.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: The weights do not fit the configuration.
    """
    model = T5(read_t5_config(folder), with_decoder=with_decoder, dtype=dtype)
    with without_initial_values():
        model.build()
    assign_t5(t5_mapping(model), SafetensorsSource(folder), on_tensor)
    return model


def load_sentence_t5(
    folder: str | os.PathLike[str],
    *,
    pooling: Pooling = "mean",
    projection_dim: int | None = None,
    normalize: bool = False,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> SentenceT5:
    """A Sentence-T5 around the weights of a T5 folder.

    By default it is the raw encoder of the paper's section 6.1, without projection and
    normalisation; a projection starts from random values and is to be trained.

    Args:
        folder: As for `load_t5`.
        pooling: As for `SentenceT5`.
        projection_dim: As for `SentenceT5`.
        normalize: As for `SentenceT5`.
        dtype: Keras dtype policy of the model, such as "bfloat16".
        on_tensor: Called with the name of each tensor that is in place.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: The weights do not fit the configuration.
    """
    model = SentenceT5(
        read_t5_config(folder),
        pooling=pooling,
        projection_dim=projection_dim,
        normalize=normalize,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    assign_t5(t5_mapping(model), SafetensorsSource(folder), on_tensor)
    return model


def t5_mapping(model: T5 | SentenceT5) -> dict[str, Target]:
    """Name → variable for all that a Hugging Face folder holds of a model."""
    return _NAMES.targets(model)


def assign_t5(
    mapping: dict[str, Target],
    source: WeightSource,
    on_tensor: Callable[[str], None],
) -> None:
    """Assigns the weights of a T5; of an encoder, what a checkpoint's decoder has is left out."""
    if _TABLE not in source.shapes() and _COPY in source.shapes():
        mapping = {_COPY if name == _TABLE else name: to for name, to in mapping.items()}
    parts = {name.split(".")[0] for name in mapping}
    unused = {"decoder", "lm_head"} - parts

    def left_out(name: str) -> bool:
        return name in _DUPLICATES or name.split(".")[0] in unused

    assign_weights(mapping, source, left_out=left_out, on_tensor=on_tensor)
