"""Reads BERT, RoBERTa and Sentence-BERT from checkpoints of other libraries."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Literal, cast

import msgspec
import numpy as np

from use_st5.convert.checkpoint import BERT_CONFIG, Checkpoint
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
    Pooling,
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
}
_REMEDY = "Give the folder of a model as transformers saves it."


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelType:
    """A type of model in `config.json`; `settings`: BERT's name of a setting → the type's own."""

    label: str
    names: WeightNames
    padding_id: int
    skips_positions: bool
    tokenizers: tuple[type[FramedTokenizer], ...]
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    model: type[SentenceBert] = SentenceBert


MODEL_TYPES = {
    "bert": ModelType(
        label="BERT",
        names=HUGGING_FACE,
        padding_id=0,
        skips_positions=False,
        # The second is for models distilled from XLM-RoBERTa, such as multilingual-e5-small.
        tokenizers=(WordPieceTokenizer, FramedSentencePieceTokenizer),
    ),
    "distilbert": ModelType(
        label="DistilBERT",
        names=HUGGING_FACE_DISTILBERT,
        padding_id=0,
        skips_positions=False,
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
        skips_positions=True,
        tokenizers=(BytePairTokenizer,),
    ),
    "xlm-roberta": ModelType(
        label="XLM-RoBERTa",
        names=HUGGING_FACE_ROBERTA,
        padding_id=1,
        skips_positions=True,
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
    pooling: str | None = None,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
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
        pooling=cast("Pooling", checkpoint.pooling(pooling) or POOLINGS[0]),
        **layers_of(modules, config.hidden_dim),
        normalize=modules is not None and modules.normalize,
        head=head,
        dtype=dtype,
    )
    with without_initial_values():
        model.build()
    variables = weight_variables(model)
    mapping = {
        names[path]: Target(variable, path in transposed_paths)
        for path, variable in variables.items()
    }
    assign_weights(mapping, source, on_tensor=on_tensor)
    assign_layers(modules, model, on_tensor=on_tensor)
    model.pooler = read_pooler(checkpoint, config.hidden_dim)
    return model


def _open(
    checkpoint: Checkpoint, kind: ModelType, padding: int | None
) -> tuple[WeightNames, BertConfig, WeightSource]:
    """The names of the weights, the shape of the model, and the tensors by these names."""
    if checkpoint.format != "TensorFlow":
        return _of_hugging_face(checkpoint, kind, kind.padding_id if padding is None else padding)
    if ORIGINAL.tables[WORDS] in checkpoint.source.shapes():
        return _of_google_research(checkpoint)
    return _of_model_garden(checkpoint.source)


def layers_of(modules: SentenceModules | None, hidden_dim: int) -> dict[str, Any]:
    """The arguments `dense` and `after` of a `SentenceBert`; the tensors are checked."""
    configs: list[ProjectionConfig | NormConfig] = []
    width = hidden_dim
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


def assign_layers(
    modules: SentenceModules | None, model: SentenceBert, *, on_tensor: Callable[[str], None]
) -> None:
    """Reads the tensors of the modules after the pooling into the layers of `layers_of`."""
    if modules is not None:
        for module, layer in zip(modules.behind_pooling, model.behind_pooling, strict=True):
            module.assign(layer, on_tensor=on_tensor)


class _Settings(msgspec.Struct):
    """Settings of a BERT in `config.json`, with the defaults of transformers."""

    model_type: str
    vocab_size: Positive
    hidden_size: Positive
    num_hidden_layers: Positive
    num_attention_heads: Positive
    intermediate_size: Positive
    max_position_embeddings: Tokens
    type_vocab_size: Count = 0
    hidden_act: Literal["gelu", "gelu_new", "gelu_pytorch_tanh"] = "gelu"
    hidden_dropout_prob: Rate = 0.1
    attention_probs_dropout_prob: Rate = 0.1
    layer_norm_eps: Epsilon = 1e-12
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
    check_layers(settings.num_hidden_layers, checkpoint.source)
    stated = kind.padding_id if settings.pad_token_id is None else settings.pad_token_id
    if kind.skips_positions and stated != padding:
        where = checkpoint.settings_file
        raise ValueError(f"{where}: pad_token_id: expected {padding}, received {stated}. {_REMEDY}")
    return kind.model.config_type(
        vocabulary_size=settings.vocab_size,
        num_layers=settings.num_hidden_layers,
        hidden_dim=settings.hidden_size,
        intermediate_dim=settings.intermediate_size,
        num_heads=settings.num_attention_heads,
        max_positions=settings.max_position_embeddings - _first_position(kind, padding),
        num_token_types=settings.type_vocab_size,
        activation=_ACTIVATIONS[settings.hidden_act],
        layer_norm_epsilon=settings.layer_norm_eps,
        dropout=settings.hidden_dropout_prob,
        attention_dropout=settings.attention_probs_dropout_prob,
    )


def _first_position(kind: ModelType, padding: int) -> int:
    """The row of the position table for the first token."""
    return padding + 1 if kind.skips_positions else 0


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
        _drop_copies(names, source, tables[WORDS])
    first = _first_position(kind, padding)
    first_rows: dict[str, tuple[int, list[int]]] = {tables[POSITIONS]: (first, [])}
    first_rows |= padding_first(padding, tables[WORDS], tables[WORD_BIAS])
    return kind.names, config, RenamedSource(source, names, first_rows=first_rows)


def padding_first(padding: int, *names: str) -> dict[str, tuple[int, list[int]]]:
    """The `first_rows` of a `RenamedSource` that swap the rows of the padding and of id 0."""
    rows = [padding, *range(1, padding), 0]
    return dict.fromkeys(names, (padding + 1, rows)) if padding else {}


def _drop_copies(names: dict[str, str], source: WeightSource, table: str) -> None:
    """Drops the head's second table and second bias, which must equal the first ones."""
    for copy, head in _COPIES.items():
        for second, first in ((f"{copy}.weight", table), (f"{copy}.bias", f"{head}.bias")):
            if second not in names:
                continue
            stored_name = names.pop(second)
            if first not in names:
                names[first] = stored_name
            elif not np.array_equal(source.read(stored_name), source.read(names[first])):
                raise ValueError(f"{source.where}: expected {second} to be {first} again.")


# TensorFlow: google-research/bert and the Model Garden

# The tensors that are read: without the pooler (see `read_pooler`) and a classifier's layers.
_ORIGINAL_PARTS = re.compile(r"bert/(?!pooler/).*|cls/predictions/.*")

# The name of the token table, if the masked language model shares it.
_GARDEN_SHARED = "masked_lm/embedding_table"
# The layers of a functional model, `BertEncoder`, have numbers: three tables, a norm, the blocks.
_FIRST_BLOCK = 4


def _of_google_research(checkpoint: Checkpoint) -> tuple[WeightNames, BertConfig, WeightSource]:
    """Reads "gelu" in the settings as the exact gelu, as transformers does."""
    if not checkpoint.settings:
        raise ValueError(f"{checkpoint.where}: expected {BERT_CONFIG} next to it, found none.")
    source = checkpoint.source
    names = {name: name for name in source.shapes() if _ORIGINAL_PARTS.fullmatch(name)}
    config = _config(checkpoint, MODEL_TYPES["bert"], 0)
    return ORIGINAL, config, RenamedSource(source, names)


def _of_model_garden(source: WeightSource) -> tuple[WeightNames, BertConfig, WeightSource]:
    """An encoder that `tf.train.Checkpoint` wrote, alone or inside a `BertPretrainerV2`."""
    roots = _garden_roots(source.shapes())
    if len(roots) > 1:
        raise ValueError(f"{source.where}: expected one BERT, found those of {listed(roots)}.")
    names = _below(roots[0], source)
    stored_shapes = source.shapes()
    shapes = {name: stored_shapes[old] for name, old in names.items()}
    config = _garden_config(shapes, where=source.where)
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
            name = _unnumbered(stored_name.removeprefix(root))
            # Names of the encoder itself start with "_", those of a model around it do not. The
            # pooler is not read here.
            if name.startswith("_") and not name.startswith("_pooler_layer"):
                names[name] = stored_name
    shared = names.pop(_GARDEN_SHARED, None)
    if shared is not None:
        names.setdefault(MODEL_GARDEN.tables[WORDS], shared)
    return names


def _unnumbered(name: str) -> str:
    """The name in a `BertEncoderV2` of a tensor that a functional `BertEncoder` numbers."""
    match = re.fullmatch(r"layer_with_weights-(\d+)/(.*)", name)
    if not match:
        return name
    number, rest = int(match[1]), match[2]
    if number < _FIRST_BLOCK:
        tables = [MODEL_GARDEN.tables[path] for path in (WORDS, POSITIONS, TYPES)]
        return [*tables, f"{MODEL_GARDEN.layers['norm']}/{rest}"][number]
    # The last layer is the pooler: it has no sublayers.
    return f"_transformer_layers/{number - _FIRST_BLOCK}/{rest}" if "/" in rest else "_pooler_layer"


def _garden_config(shapes: Mapping[str, tuple[int, ...]], *, where: str) -> BertConfig:
    """The shape of the BERT with these tensors."""
    tables = [MODEL_GARDEN.tables[path] for path in (WORDS, POSITIONS, TYPES)]
    query = f"{MODEL_GARDEN.block}{MODEL_GARDEN.layers['query']}/kernel"
    inner = f"{MODEL_GARDEN.block}{MODEL_GARDEN.layers['inner']}/kernel".format(n=0)
    ranks = {name: 2 for name in (*tables, inner)} | {query.format(n=0): 3}
    sizes = {name: [*filter(None, shapes.get(name, ()))] for name in ranks}
    if wrong := [name for name, rank in ranks.items() if len(sizes[name]) != rank]:
        raise ValueError(f"{where}: expected a BERT of the Model Garden with {listed(wrong)}.")
    layers = 0
    while query.format(n=layers) in shapes:
        layers += 1
    words, positions, types = (shapes[name] for name in tables)
    return BertConfig(
        vocabulary_size=words[0],
        num_layers=layers,
        hidden_dim=words[1],
        intermediate_dim=shapes[inner][1],
        num_heads=shapes[query.format(n=0)][1],
        max_positions=positions[0],
        num_token_types=types[0],
        activation="gelu_tanh",
    )


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
