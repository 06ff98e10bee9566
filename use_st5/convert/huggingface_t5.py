"""T5, T5 1.1 and mT5 from Hugging Face's folders: `config.json` and safetensors files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from use_st5._records import Positive, read_record
from use_st5.convert.assignment import Target, assign_weights, check_shapes
from use_st5.convert.renamed_source import RenamedSource
from use_st5.convert.safetensors_source import SafetensorsSource
from use_st5.convert.t5_names import T5Names
from use_st5.convert.weight_source import WeightSource
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.t5.config import T5Config
from use_st5.models.t5.sentence_t5 import Pooling, SentenceT5
from use_st5.models.t5.t5 import T5

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


class _Settings(msgspec.Struct):
    """What a T5 says of itself in `config.json`, with the defaults of transformers."""

    model_type: str
    vocab_size: Positive
    num_layers: Positive
    d_model: Positive
    d_ff: Positive
    num_heads: Positive
    d_kv: Positive
    feed_forward_proj: str = "relu"
    layer_norm_epsilon: float = 1e-6
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None
    num_decoder_layers: Positive | None = None
    relative_attention_num_buckets: Positive = 32
    relative_attention_max_distance: Positive = 128


def read_t5_config(folder: str | os.PathLike[str]) -> T5Config:
    """The shape of a T5 from its `config.json`.

    Raises:
        FileNotFoundError: There is no `config.json`.
        ValueError: It is not that of a T5, or of a kind that is not known.
    """
    path = Path(folder, "config.json")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected the configuration of a T5, found no file.")
    remedy = "Give the folder of a T5 or mT5 as transformers saves it."
    settings = read_record(path, _Settings, remedy=remedy)
    expected = {
        "model_type": ["t5", "mt5"],
        "feed_forward_proj": [*_ACTIVATIONS],
        "layer_norm_epsilon": [1e-6],
    }
    for name, values in expected.items():
        if (found := getattr(settings, name)) not in values:
            raise ValueError(
                f"{path}: $.{name}: expected one of {values}, received {found!r}. {remedy}"
            )
    buckets = settings.relative_attention_num_buckets
    if not 4 <= buckets < 2 * settings.relative_attention_max_distance:
        raise ValueError(
            f"{path}: $.relative_attention_num_buckets: expected 4 or more, and less than twice "
            f"relative_attention_max_distance ({settings.relative_attention_max_distance:,}), "
            f"received {buckets:,}. {remedy}"
        )
    tied, scaled = settings.tie_word_embeddings, settings.scale_decoder_outputs
    return T5Config(
        vocabulary_size=settings.vocab_size,
        num_layers=settings.num_layers,
        hidden_dim=settings.d_model,
        intermediate_dim=settings.d_ff,
        num_heads=settings.num_heads,
        key_value_dim=settings.d_kv,
        activation=_ACTIVATIONS[settings.feed_forward_proj],
        tied_softmax=tied,
        # transformers 5 ties what it saves, and says separately that 1.1 does not scale.
        scaled_softmax=tied if scaled is None else scaled,
        num_decoder_layers=settings.num_decoder_layers,
        num_buckets=buckets,
        max_distance=settings.relative_attention_max_distance,
    )


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
    config = read_t5_config(folder)
    untied = with_decoder and not config.tied_softmax
    source = _open(folder, config, decoder=with_decoder, logits=untied)
    model = T5(config, with_decoder=with_decoder, dtype=dtype)
    with without_initial_values():
        model.build()
    _assign(model, source, on_tensor)
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
    config = read_t5_config(folder)
    source = _open(folder, config, decoder=pooling == "decoder", logits=False)
    model = SentenceT5(
        config,
        pooling=pooling,
        projection_dim=projection_dim,
        normalize=normalize,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    _assign(model, source, on_tensor)
    return model


def t5_mapping(model: T5 | SentenceT5) -> dict[str, Target]:
    """Name → variable for all that a Hugging Face folder holds of a model."""
    return _NAMES.targets(model)


def _open(
    folder: str | os.PathLike[str], config: T5Config, *, decoder: bool, logits: bool
) -> WeightSource:
    """The weights of a folder, held against its configuration before a model of its size is built.

    The table goes by one name; its copies, and what no model has, are not seen.
    """
    source = SafetensorsSource(folder)
    names = {name: name for name in source.shapes() if name not in _DUPLICATES}
    if _TABLE not in names and _COPY in source.shapes():
        names[_TABLE] = _COPY
    source = RenamedSource(source, names)
    expected = _NAMES.shapes(config, source, decoder=decoder, logits=logits)
    check_shapes(expected, source, left_out=_left_out(expected))
    return source


def _assign(model: T5 | SentenceT5, source: WeightSource, on_tensor: Callable[[str], None]) -> None:
    mapping = t5_mapping(model)
    assign_weights(mapping, source, left_out=_left_out(mapping), on_tensor=on_tensor)


def _left_out(expected: Iterable[str]) -> Callable[[str], bool]:
    """Tells, where an encoder is read, what a checkpoint's decoder has."""
    unused = {"decoder", "lm_head"} - {name.split(".")[0] for name in expected}
    return lambda name: name.split(".")[0] in unused
