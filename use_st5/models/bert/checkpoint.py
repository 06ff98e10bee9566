"""Reads BERT, RoBERTa and Sentence-BERT from checkpoints of other libraries."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import field

from use_st5.convert.checkpoint import BERT_CONFIG, Checkpoint, shape_from
from use_st5.convert.sentence_transformers import SentenceModules
from use_st5.convert.weights import (
    RenamedSource,
    Target,
    WeightSource,
    assign_weights,
    check_layers,
    check_shapes,
    check_weights,
    listed,
)
from use_st5.io.records import Count, Epsilon, Positive, Rate, Tokens
from use_st5.layers.random_normal import without_initial_values
from use_st5.models.bert.model import (
    POOLINGS,
    Activation,
    BertConfig,
    DenseActivation,
    NormConfig,
    ProjectionConfig,
    SentenceBert,
)
from use_st5.models.bert.names import (
    HUGGING_FACE,
    HUGGING_FACE_DISTILBERT,
    HUGGING_FACE_ROBERTA,
    MODEL_GARDEN,
    ORIGINAL,
    POSITIONS,
    TYPES,
    WORD_BIAS,
    WORDS,
    WeightNames,
    weight_shapes,
    weight_variables,
)
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer
from use_st5.tokenizers.sentencepiece_tokenizer import FramedSentencePieceTokenizer
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

# transformers' names of activations → ours; torch's classes → Keras's names.
_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_DENSE_ACTIVATIONS: dict[str, DenseActivation] = {
    "Identity": "linear",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "Sigmoid": "sigmoid",
    "SiLU": "silu",
    "Mish": "mish",
    "ELU": "elu",
    "LeakyReLU": "leaky_relu",
}
_REMEDY = "Give the folder of a model as transformers saves it."


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelType:
    """A type of model in `config.json`.

    Attributes:
        label: Its common name.
        names: The names of its weights.
        padding_id: The id of padding. If it is not 0, positions are counted from the id after it.
        tokenizers: The classes of its tokenizers.
        settings: BERT's name of a setting → the type's own.
        model: The class of the Keras model.
    """

    label: str
    names: WeightNames
    padding_id: int = 0
    tokenizers: tuple[type[FramedTokenizer], ...]
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    model: type[SentenceBert] = SentenceBert


MODEL_TYPES = {
    "bert": ModelType(
        label="BERT",
        names=HUGGING_FACE,
        # The second is for models distilled from XLM-RoBERTa, such as multilingual-e5-small.
        tokenizers=(WordPieceTokenizer, FramedSentencePieceTokenizer),
    ),
    "distilbert": ModelType(
        label="DistilBERT",
        names=HUGGING_FACE_DISTILBERT,
        tokenizers=(WordPieceTokenizer,),
        settings={
            "hidden_size": "dim",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "intermediate_size": "hidden_dim",
            "hidden_act": "activation",
            "hidden_dropout_prob": "dropout",
            "attention_probs_dropout_prob": "attention_dropout",
        },
    ),
    "roberta": ModelType(
        label="RoBERTa",
        names=HUGGING_FACE_ROBERTA,
        padding_id=1,
        tokenizers=(BytePairTokenizer,),
    ),
    "xlm-roberta": ModelType(
        label="XLM-RoBERTa",
        names=HUGGING_FACE_ROBERTA,
        padding_id=1,
        tokenizers=(FramedSentencePieceTokenizer,),
    ),
}


def can_read(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint contains a model of one of `MODEL_TYPES`."""
    if checkpoint.format != "TensorFlow":
        return checkpoint.settings.get("model_type") in MODEL_TYPES
    names = checkpoint.source.shapes()
    return ORIGINAL.tables[WORDS] in names or bool(_garden_roots(names))


def read_sentence_bert(
    checkpoint: Checkpoint,
    *,
    separator: int | None,
    padding: int | None = None,
    model_type: ModelType | None = None,
    dtype: Any = None,
) -> SentenceBert:
    """A Sentence-BERT with the weights of a checkpoint (`Family.read`); projections are float32."""
    modules = checkpoint.modules
    kind = model_type or MODEL_TYPES[checkpoint.settings.get("model_type", "bert")]
    weight_names, config, source = _open(checkpoint, kind, padding)
    head = weight_names.has_head(source.shapes())
    names = weight_names.names(config, head=head)
    transposed_paths = {
        path for path in names if weight_names.transposed and path.endswith("/kernel")
    }
    shapes = weight_shapes(config, head=head)
    expected_shapes = {
        names[path]: shape[::-1] if path in transposed_paths else shape
        for path, shape in shapes.items()
    }
    check_shapes(expected_shapes, source)
    model = kind.model(
        dataclasses.replace(config, separator_id=separator),
        pooling=checkpoint.pooling or POOLINGS[0],
        **layers_of(modules, config.hidden_dim),
        normalize=modules is not None and modules.normalize,
        head=head,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    mapping = {
        names[path]: Target(variable, path in transposed_paths)
        for path, variable in weight_variables(model).items()
    }
    assign_weights(mapping, source)
    assign_layers(modules, model)
    model.pooler = read_pooler(checkpoint, config.hidden_dim)
    return model


def _open(
    checkpoint: Checkpoint, kind: ModelType, padding: int | None
) -> tuple[WeightNames, BertConfig, WeightSource]:
    """The names of the weights, the shape of the model, and the tensors by these names."""
    if checkpoint.format != "TensorFlow":
        return _of_hugging_face(checkpoint, kind, kind.padding_id if padding is None else padding)
    source = checkpoint.source
    if ORIGINAL.tables[WORDS] not in source.shapes():
        return _of_model_garden(source)
    if not checkpoint.settings:
        raise ValueError(f"{checkpoint.where}: expected {BERT_CONFIG} next to it, found none.")
    names = {name: name for name in source.shapes() if _ORIGINAL_PARTS.fullmatch(name)}
    # "gelu" in the settings is the exact gelu, as in transformers.
    config = _config(checkpoint, MODEL_TYPES["bert"], 0)
    return ORIGINAL, config, RenamedSource(source, names)


def layers_of(modules: SentenceModules | None, hidden_dim: int) -> dict[str, Any]:
    """The arguments `dense` and `after` of a `SentenceBert`; the tensors are checked."""
    configs: list[ProjectionConfig | NormConfig] = []
    width = hidden_dim * ((modules and modules.pooling) or "").count("+") + hidden_dim
    for module in modules.behind_pooling if modules else ():
        module.check(width)
        width = module.width
        if module.activation is None:
            configs.append(NormConfig())
        elif module.activation in _DENSE_ACTIVATIONS:
            activation = _DENSE_ACTIVATIONS[module.activation]
            configs.append(ProjectionConfig(width, module.bias, activation))
        else:
            known, where = [*_DENSE_ACTIVATIONS], module.where
            raise ValueError(f"{where}: expected one of {known}, found {module.activation!r}.")
    first = configs[0] if configs and isinstance(configs[0], ProjectionConfig) else None
    return {"dense": first, "after": configs if first is None else configs[1:]}


def assign_layers(modules: SentenceModules | None, model: SentenceBert) -> None:
    """Reads the tensors of the modules after the pooling into the layers of `layers_of`."""
    if modules is not None:
        for module, layer in zip(modules.behind_pooling, model.behind_pooling, strict=True):
            module.assign(layer)


class _Settings(msgspec.Struct):
    """Settings of a BERT in `config.json` as fields of `BertConfig`; defaults of transformers."""

    model_type: str
    vocabulary_size: Positive = field(name="vocab_size")
    hidden_dim: Positive = field(name="hidden_size")
    num_layers: Positive = field(name="num_hidden_layers")
    num_heads: Positive = field(name="num_attention_heads")
    intermediate_dim: Positive = field(name="intermediate_size")
    max_positions: Tokens = field(name="max_position_embeddings")
    num_token_types: Count = field(name="type_vocab_size", default=0)
    activation: Literal["gelu", "gelu_new", "gelu_pytorch_tanh"] = field(
        name="hidden_act", default="gelu"
    )
    dropout: Rate = field(name="hidden_dropout_prob", default=0.1)
    attention_dropout: Rate = field(name="attention_probs_dropout_prob", default=0.1)
    layer_norm_epsilon: Epsilon = field(name="layer_norm_eps", default=1e-12)
    pad_token_id: int | None = None
    position_embedding_type: Literal["absolute"] | None = "absolute"
    is_decoder: Literal[False] | None = False
    add_cross_attention: Literal[False] | None = False


def _config(checkpoint: Checkpoint, kind: ModelType, padding: int) -> BertConfig:
    """The shape of a model from its settings."""
    renamed = {name: checkpoint.settings.get(own) for name, own in kind.settings.items()}
    present = {name: value for name, value in renamed.items() if value is not None}
    checkpoint = dataclasses.replace(checkpoint, settings={**checkpoint.settings, **present})
    settings = checkpoint.settings_as(_Settings, remedy=_REMEDY)
    check_layers(settings.num_layers, checkpoint.source)
    stated = kind.padding_id if settings.pad_token_id is None else settings.pad_token_id
    if kind.padding_id and stated != padding:
        where = checkpoint.settings_file
        raise ValueError(f"{where}: pad_token_id: expected {padding}, received {stated}. {_REMEDY}")
    return shape_from(
        settings,
        kind.model.config_type,
        max_positions=settings.max_positions - _first_position(kind, padding),
        activation=_ACTIVATIONS[settings.activation],
    )


def _first_position(kind: ModelType, padding: int) -> int:
    """The row of the position table for the first token."""
    return padding + 1 if kind.padding_id else 0


# transformers and sentence-transformers

# Tensors that a Sentence-BERT does not have (`_UNREAD`): the pooler (see `read_pooler`), the layer
# for the next sentence, buffers.
_PREFIX = re.compile(r"^(bert|roberta|mpnet|distilbert)\.")
_UNREAD = re.compile(r"pooler\..*|cls\.seq_relationship\..*|embeddings\.position_ids")
# Copies of the token table and of the words' bias, if a file contains them twice.
_COPIES = {
    "cls.predictions.decoder": "cls.predictions",
    "lm_head.decoder": "lm_head",
    "vocab_projector": "vocab_projector",
}


def _of_hugging_face(
    checkpoint: Checkpoint, kind: ModelType, padding: int
) -> tuple[WeightNames, BertConfig, WeightSource]:
    """Names may have a prefix such as "bert."; old files name norms' weights "gamma" and "beta"."""
    config = _config(checkpoint, kind, padding)
    source = checkpoint.source
    names: dict[str, str] = {}
    for stored in source.shapes():
        name = _PREFIX.sub("", stored)
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        if not _UNREAD.fullmatch(name):
            names[name] = stored
    tables = kind.names.tables
    if kind.names.has_head(names):
        # The head's second table and second bias must equal the first ones.
        for copy, head in _COPIES.items():
            pairs = {f"{copy}.weight": tables[WORDS], f"{copy}.bias": f"{head}.bias"}
            for second in pairs.keys() & names:
                first, stored = pairs[second], names.pop(second)
                equal = names.setdefault(first, stored)
                if equal != stored and not np.array_equal(source.read(stored), source.read(equal)):
                    raise ValueError(f"{source.where}: expected {second} to be {first} again.")
    first_rows: dict[str, tuple[int, list[int]]] = {
        tables[POSITIONS]: (_first_position(kind, padding), [])
    }
    first_rows |= padding_first(padding, tables[WORDS], tables[WORD_BIAS])
    return kind.names, config, RenamedSource(source, names, first_rows=first_rows)


def padding_first(padding: int, *names: str) -> dict[str, tuple[int, list[int]]]:
    """The `first_rows` of a `RenamedSource` that swap the rows of the padding and of id 0."""
    rows = [padding, *range(1, padding), 0]
    return dict.fromkeys(names, (padding + 1, rows)) if padding else {}


# TensorFlow: google-research/bert and the Model Garden

# The tensors that are read: without the pooler (see `read_pooler`) and a classifier's layers.
_ORIGINAL_PARTS = re.compile(r"bert/(?!pooler/).*|cls/predictions/.*")

# The name of the token table, if the masked language model shares it.
_GARDEN_SHARED = "masked_lm/embedding_table"
# The layers of a functional model, `BertEncoder`, have numbers: three tables, a norm, the blocks.
_GARDEN_TABLES = [MODEL_GARDEN.tables[path] for path in (WORDS, POSITIONS, TYPES)]
_FIRST_BLOCK = 4


def _of_model_garden(source: WeightSource) -> tuple[WeightNames, BertConfig, WeightSource]:
    """An encoder that `tf.train.Checkpoint` wrote, alone or inside a `BertPretrainerV2`."""
    roots = _garden_roots(source.shapes())
    if len(roots) > 1:
        raise ValueError(f"{source.where}: expected one BERT, found those of {listed(roots)}.")
    names = _below(roots[0], source)
    stored_shapes = source.shapes()
    shapes = {name: stored_shapes[old] for name, old in names.items()}
    query = f"{MODEL_GARDEN.block}{MODEL_GARDEN.layers['query']}/kernel"
    inner = f"{MODEL_GARDEN.block}{MODEL_GARDEN.layers['inner']}/kernel".format(n=0)
    ranks = {name: 2 for name in (*_GARDEN_TABLES, inner)} | {query.format(n=0): 3}
    sizes = {name: [*filter(None, shapes.get(name, ()))] for name in ranks}
    if wrong := [name for name, rank in ranks.items() if len(sizes[name]) != rank]:
        where = source.where
        raise ValueError(f"{where}: expected a BERT of the Model Garden with {listed(wrong)}.")
    words, positions, types = (shapes[name] for name in _GARDEN_TABLES)
    config = BertConfig(
        vocabulary_size=words[0],
        num_layers=next(n for n in itertools.count() if query.format(n=n) not in shapes),
        hidden_dim=words[1],
        intermediate_dim=shapes[inner][1],
        num_heads=shapes[query.format(n=0)][1],
        max_positions=positions[0],
        num_token_types=types[0],
        activation="gelu_tanh",
    )
    head = MODEL_GARDEN.has_head(shapes)
    model_shapes = weight_shapes(config, head=head)
    # Kernels and biases of the attention have an axis for the heads.
    flat_shapes = {
        name: model_shapes[path]
        for path, name in MODEL_GARDEN.names(config, head=head).items()
        if len(shapes.get(name, ())) == len(model_shapes[path]) + 1
        and math.prod(shapes[name]) == math.prod(model_shapes[path])
    }
    return MODEL_GARDEN, config, RenamedSource(source, names, reshaped=flat_shapes)


def _garden_roots(names: Iterable[str]) -> list[str]:
    """The prefix of the tensors' names of each Model Garden encoder among these names."""
    query = f"{MODEL_GARDEN.layers['query']}/kernel"
    name_set = {*names}
    ends = (
        (MODEL_GARDEN.tables[POSITIONS], f"_transformer_layers/0/{query}"),
        ("layer_with_weights-1/embeddings", f"layer_with_weights-{_FIRST_BLOCK}/{query}"),
    )
    return [
        name.removesuffix(table)
        for table, first in ends
        for name in sorted(name_set)
        if name.endswith(table) and name.removesuffix(table) + first in name_set
    ]


def _below(root: str, source: WeightSource) -> dict[str, str]:
    """Name in a `BertEncoderV2` → stored name, for an encoder and the head next to it."""
    names: dict[str, str] = {}
    parent = "/".join(root.split("/")[:-2])
    parent = f"{parent}/" if parent else ""
    for stored_name in source.shapes():
        if stored_name.startswith(f"{parent}masked_lm/"):
            names[stored_name.removeprefix(parent)] = stored_name
        elif stored_name.startswith(root):
            name = stored_name.removeprefix(root)
            if numbered := re.fullmatch(r"layer_with_weights-(\d+)/(.*)", name):
                number, rest = int(numbered[1]), numbered[2]
                norm = f"{MODEL_GARDEN.layers['norm']}/{rest}"
                # The last layer is the pooler: it has no sublayers.
                block = f"_transformer_layers/{number - _FIRST_BLOCK}/{rest}" if "/" in rest else ""
                name = block if number >= _FIRST_BLOCK else [*_GARDEN_TABLES, norm][number]
            # Names of the encoder itself start with "_", those of a model around it do not. The
            # pooler is not read here.
            if name.startswith("_") and not name.startswith("_pooler_layer"):
                names[name] = stored_name
    shared = names.pop(_GARDEN_SHARED, None)
    if shared is not None:
        names.setdefault(MODEL_GARDEN.tables[WORDS], shared)
    return names


# The pooler's kernel in folders of transformers, with and without a task's model around the BERT,
# and in google-research/bert. RoBERTa's own classifiers do not use the pooler of their checkpoint.
_POOLERS = ("bert.pooler.dense.weight", "pooler.dense.weight", "bert/pooler/dense/kernel")


def read_pooler(checkpoint: Checkpoint, hidden_dim: int) -> SimpleNamespace | None:
    """The kernel and bias of a BERT's pooler; None if there is none, or for a RoBERTa."""
    source = checkpoint.source
    kernel = next((name for name in _POOLERS if name in source.shapes()), None)
    if kernel is None or checkpoint.settings.get("model_type") != "bert":
        return None
    bias = re.sub("(weight|kernel)$", "bias", kernel)
    shapes = {kernel: (hidden_dim, hidden_dim), bias: (hidden_dim,)}
    check_shapes(shapes, source, left_out=lambda name: True)
    arrays = [source.read(name) for name in shapes]
    for name, array in zip(shapes, arrays, strict=True):
        check_weights(array, name, source)
    matrix, vector = (np.asarray(array, np.float32) for array in arrays)
    matrix = matrix.T if kernel.endswith(".weight") else matrix
    return SimpleNamespace(kernel=matrix, bias=vector)
