"""The tensors of a BERT in TensorFlow's checkpoints: the original ones, and the Model Garden's."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np

from use_st5.convert.assignment import listed
from use_st5.convert.checkpoint import BERT_CONFIG, Checkpoint
from use_st5.convert.weight_source import RenamedSource, WeightSource
from use_st5.models.bert import checkpoint_names
from use_st5.models.bert.checkpoint_formats import BertTensors, read_config
from use_st5.models.bert.checkpoint_names import POSITIONS, WORD_BIAS, WORDS
from use_st5.models.bert.config import BertConfig

_ORIGINAL_TABLES = {
    WORDS: "bert/embeddings/word_embeddings",
    POSITIONS: "bert/embeddings/position_embeddings",
    "types": "bert/embeddings/token_type_embeddings",
    WORD_BIAS: "cls/predictions/output_bias",
}
_ORIGINAL_LAYERS = {
    "norm": "bert/embeddings/LayerNorm",
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "output": "attention/output/dense",
    "attention_norm": "attention/output/LayerNorm",
    "inner": "intermediate/dense",
    "outer": "output/dense",
    "output_norm": "output/LayerNorm",
    "head/transform": "cls/predictions/transform/dense",
    "head/norm": "cls/predictions/transform/LayerNorm",
}
# What none of our models has: a layer over the first token, and what a classifier adds.
_ORIGINAL_PARTS = re.compile(r"bert/(?!pooler/).*|cls/predictions/.*")

# Below the encoder. Where the masked language model shares the table, that holds it.
_GARDEN_TABLES = {
    WORDS: "_embedding_layer/embeddings",
    POSITIONS: "_position_embedding_layer/embeddings",
    "types": "_type_embedding_layer/embeddings",
}
_GARDEN_LAYERS = {
    "norm": "_embedding_norm_layer",
    "query": "_attention_layer/_query_dense",
    "key": "_attention_layer/_key_dense",
    "value": "_attention_layer/_value_dense",
    "output": "_attention_layer/_output_dense",
    "attention_norm": "_attention_layer_norm",
    "inner": "_intermediate_dense",
    "outer": "_output_dense",
    "output_norm": "_output_layer_norm",
    "head/transform": "masked_lm/dense",
    "head/norm": "masked_lm/layer_norm",
}
# In a checkpoint ".S" stands for the slash of a variable's own name.
_GARDEN_HEAD = {WORDS: "masked_lm/embedding_table", WORD_BIAS: "masked_lm/output_bias.Sbias"}
# The layers of a functional model, `BertEncoder`, have numbers: three tables, a norm, the blocks.
_NUMBERED = ("layer_with_weights-0/embeddings", "layer_with_weights-1/embeddings")
_FIRST_BLOCK = 4


def knows(checkpoint: Checkpoint) -> bool:
    """Whether a TensorFlow checkpoint holds a BERT."""
    names = checkpoint.source.shapes()
    return _ORIGINAL_TABLES[WORDS] in names or bool(_garden_roots(names))


def tensorflow_tensors(checkpoint: Checkpoint) -> BertTensors:
    """The BERT of a TensorFlow checkpoint.

    Of google-research/bert, with `bert_config.json` beside it: its "gelu" is read as the exact one,
    as transformers does. Or of the Model Garden's `BertEncoder` and `BertEncoderV2`, written by
    `tf.train.Checkpoint(model=encoder)`, `(encoder=encoder)`, or with a `BertPretrainerV2` around
    it; the shapes say what it is like, and the activation is the Model Garden's, the approximate
    gelu. Tensors do not tell whether `norm_first` was set; it must be False.

    Raises:
        ValueError: They are not those of a BERT, or there is no `bert_config.json`.
    """
    if _ORIGINAL_TABLES[WORDS] not in checkpoint.source.shapes():
        return _of_garden(checkpoint.source)
    if not checkpoint.settings:
        raise ValueError(
            f"{checkpoint.where}: expected the settings of a BERT, {BERT_CONFIG}, beside the "
            "checkpoint, found none. Copy it there from the model's archive."
        )
    source = checkpoint.source
    kept = {name: name for name in source.shapes() if _ORIGINAL_PARTS.fullmatch(name)}
    config = read_config(checkpoint)
    head = f"{_ORIGINAL_LAYERS['head/transform']}/kernel" in kept
    names = _names(config, head, _ORIGINAL_TABLES, _ORIGINAL_LAYERS, "bert/encoder/layer_{n}/")
    return BertTensors(
        source=RenamedSource(source, kept),
        names=names,
        config=config,
        head=head,
        transposed=False,
    )


def _names(
    config: BertConfig,
    head: bool,
    tables: Mapping[str, str],
    layers: Mapping[str, str],
    block: str,
) -> dict[str, str]:
    """Path → name of each weight.

    Args:
        config: The shape of the model.
        head: Whether the masked language model's head is among them.
        tables: Path → name, of what is no layer's.
        layers: Layer, or its role in a block → name.
        block: What stands before the names of block `{n}`.
    """
    parts = {"kernel": "kernel", "bias": "bias", "scale": "gamma", "shift": "beta"}
    names = {}
    for path in checkpoint_names.shapes(config, head=head):
        layer, _, part = path.rpartition("/")
        numbered = re.fullmatch(r"block_(\d+)/(.*)", layer)
        if path in tables:
            names[path] = tables[path]
        elif numbered:
            before = block.format(n=int(numbered[1]))
            names[path] = f"{before}{layers[numbered[2]]}/{parts[part]}"
        else:
            names[path] = f"{layers[layer]}/{parts[part]}"
    return names


def _garden_roots(names: Iterable[str]) -> list[str]:
    """Of each encoder of the Model Garden what stands before the names of its tables."""
    query = f"{_GARDEN_LAYERS['query']}/kernel"
    found = {*names}
    ends = (
        (_GARDEN_TABLES[POSITIONS], f"_transformer_layers/0/{query}"),
        (_NUMBERED[1], f"layer_with_weights-{_FIRST_BLOCK}/{query}"),
    )
    return [
        name.removesuffix(table)
        for table, first in ends
        for name in sorted(found)
        if name.endswith(table) and name.removesuffix(table) + first in found
    ]


def _of_garden(source: WeightSource) -> BertTensors:
    root, *others = _garden_roots(source.shapes())
    if others:
        raise ValueError(
            f"{source.where}: expected one BERT of the Model Garden, found {1 + len(others)}, "
            f"below {listed([root, *others])}."
        )
    source = _below(root, source)
    shapes = source.shapes()
    config = _config(shapes, where=source.where)
    head = f"{_GARDEN_LAYERS['head/transform']}/kernel" in shapes
    tables = {**_GARDEN_TABLES, WORD_BIAS: _GARDEN_HEAD[WORD_BIAS]}
    names = _names(config, head, tables, _GARDEN_LAYERS, "_transformer_layers/{n}/")
    expected = checkpoint_names.shapes(config, head=head)
    flat = _FlatSource(source, {names[path]: shape for path, shape in expected.items()})
    return BertTensors(source=flat, names=names, config=config, head=head, transposed=False)


def _below(root: str, source: WeightSource) -> WeightSource:
    """An encoder and the head beside it, by the names of `BertEncoderV2`."""
    names: dict[str, str] = {}
    beside = "/".join(root.split("/")[:-2])
    beside = f"{beside}/" if beside else ""
    for stored in source.shapes():
        if stored.startswith(f"{beside}masked_lm/"):
            names[stored.removeprefix(beside)] = stored
        elif stored.startswith(root):
            name = _unnumbered(stored.removeprefix(root))
            # What a model around the encoder has in its place is not private; the pooler is unread.
            if name.startswith("_") and not name.startswith("_pooler_layer"):
                names[name] = stored
    shared = names.pop(_GARDEN_HEAD[WORDS], None)
    if shared is not None:
        names.setdefault(_GARDEN_TABLES[WORDS], shared)
    return RenamedSource(source, names)


def _unnumbered(name: str) -> str:
    """The name in a `BertEncoderV2` of what a functional `BertEncoder` has by number."""
    found = re.fullmatch(r"layer_with_weights-(\d+)/(.*)", name)
    if not found:
        return name
    number, rest = int(found[1]), found[2]
    if number < _FIRST_BLOCK:
        return [*_GARDEN_TABLES.values(), f"{_GARDEN_LAYERS['norm']}/{rest}"][number]
    # The last one pools: it has no parts.
    return f"_transformer_layers/{number - _FIRST_BLOCK}/{rest}" if "/" in rest else "_pooler_layer"


def _config(shapes: Mapping[str, tuple[int, ...]], *, where: str) -> BertConfig:
    """The shape of the BERT with these tensors."""
    block = "_transformer_layers/{n}/"
    query = f"{block}{_GARDEN_LAYERS['query']}/kernel"
    inner = f"{block}{_GARDEN_LAYERS['inner']}/kernel".format(n=0)
    ranks = {name: 2 for name in (*_GARDEN_TABLES.values(), inner)} | {query.format(n=0): 3}
    wrong = [
        name
        for name, rank in ranks.items()
        if len(shapes.get(name, ())) != rank or 0 in shapes[name]
    ]
    if wrong:
        raise ValueError(
            f"{where}: expected the tensors of a BERT of the Model Garden, among them "
            f"{listed(wrong)}; found {listed(sorted(shapes))}."
        )
    layers = 0
    while query.format(n=layers) in shapes:
        layers += 1
    words, positions, types = (shapes[name] for name in _GARDEN_TABLES.values())
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


class _FlatSource(WeightSource):
    """Tensors whose axes of heads and of widths are one, as in our kernels and biases.

    Args:
        source: The checkpoint.
        shapes: Name → the shape that is expected of it.
    """

    def __init__(self, source: WeightSource, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.where = source.where
        self._source = source
        self._shapes = {
            name: self._flat(stored, shapes.get(name)) for name, stored in source.shapes().items()
        }

    @staticmethod
    def _flat(stored: tuple[int, ...], expected: tuple[int, ...] | None) -> tuple[int, ...]:
        """The expected shape, where nothing but the split of the heads tells it from the stored."""
        if expected is None or len(stored) != len(expected) + 1:
            return stored
        return expected if math.prod(stored) == math.prod(expected) else stored

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return dict(self._shapes)

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        return self._source.read(name).reshape(self._shapes[name])

    def check_stored(self, names: Iterable[str]) -> None:
        """Holds the shapes of tensors against the bytes that are stored for them."""
        self._source.check_stored(names)
