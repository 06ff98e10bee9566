"""The tensors of a BERT or RoBERTa in the checkpoints of other libraries, as ours has them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
import numpy as np

from use_st5._records import Positive
from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.weight_source import RenamedSource, WeightSource
from use_st5.models.bert import checkpoint_names
from use_st5.models.bert.checkpoint_names import POSITIONS, WORD_BIAS, WORDS
from use_st5.models.bert.config import Activation, BertConfig

# In Hugging Face's `config.json`.
MODEL_TYPES = ("bert", "roberta")
_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_REMEDY = "Give the folder of a BERT or RoBERTa as transformers saves it."

# What none of our models has: a layer over the first token, that of the next sentence, buffers.
_UNREAD = re.compile(r"pooler\..*|cls\.seq_relationship\..*|embeddings\.position_ids")
_HEADS = ("cls.predictions.transform.dense", "lm_head.dense")
# Copies of the table and of the words' bias, where they are written twice.
_COPIES = {"cls.predictions.decoder": "cls.predictions", "lm_head.decoder": "lm_head"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertTensors:
    """A BERT in a checkpoint, with nothing read of it but names, shapes and settings.

    Attributes:
        source: Its tensors.
        names: Path of each weight (`checkpoint_names.shapes`) → its name there.
        config: Its shape; the separator follows from the vocabulary.
        head: Whether the masked language model's head is there.
        transposed: Whether kernels are stored as their transposes, as torch's are.
    """

    source: WeightSource
    names: Mapping[str, str]
    config: BertConfig
    head: bool
    transposed: bool

    def stored_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape that the tensor must have."""
        expected = checkpoint_names.shapes(self.config, head=self.head)
        return {
            self.names[path]: shape[::-1] if self.is_transposed(path) else shape
            for path, shape in expected.items()
        }

    def is_transposed(self, path: str) -> bool:
        """Whether the tensor of a path is stored as its transpose."""
        return self.transposed and path.endswith("/kernel")


def bert_tensors(checkpoint: Checkpoint) -> BertTensors:
    """The BERT of a folder of Hugging Face or sentence-transformers.

    Names may have "bert." or "roberta." before them, and those of old files "gamma" and "beta".

    Raises:
        ValueError: Its settings are of another kind of model, or its head has a table of its own.
    """
    settings = checkpoint.settings_as(_Settings, remedy=_REMEDY)
    roberta = settings.model_type == "roberta"
    source = _renamed(checkpoint.source)
    _check_layers(settings, source)
    config = _config(settings, checkpoint.settings_file)
    head = f"{_HEADS[roberta]}.weight" in source.shapes()
    names = checkpoint_names.hugging_face(config, head=head, roberta=roberta)
    if head:
        source = _without_copies(source, names[WORDS])
    if roberta:
        source = _OurRows(source, names)
    return BertTensors(source=source, names=names, config=config, head=head, transposed=True)


def read_config(checkpoint: Checkpoint) -> BertConfig:
    """The shape of a BERT or RoBERTa by its settings.

    Raises:
        ValueError: They are of another kind of model.
    """
    settings = checkpoint.settings_as(_Settings, remedy=_REMEDY)
    _check_layers(settings, checkpoint.source)
    return _config(settings, checkpoint.settings_file)


class _Settings(msgspec.Struct):
    """What a BERT says of itself in `config.json`, with the defaults of transformers."""

    model_type: Literal["bert", "roberta"]
    vocab_size: Positive
    hidden_size: Positive
    num_hidden_layers: Positive
    num_attention_heads: Positive
    intermediate_size: Positive
    max_position_embeddings: Positive
    type_vocab_size: Positive
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = None
    position_embedding_type: str | None = "absolute"
    is_decoder: bool | None = False
    add_cross_attention: bool | None = False


def _check_layers(settings: _Settings, source: WeightSource) -> None:
    tensors = len(source.shapes())
    if settings.num_hidden_layers > tensors:
        raise ValueError(
            f"{source.where} does not fit the model: expected tensors of "
            f"{settings.num_hidden_layers:,} layers, found {tensors:,} tensors in all."
        )


def _config(settings: _Settings, where: str) -> BertConfig:
    roberta = settings.model_type == "roberta"
    padding = 1 if roberta else 0
    expected: dict[str, list[Any]] = {
        "hidden_act": [*_ACTIVATIONS],
        "position_embedding_type": ["absolute", None],
        "is_decoder": [False, None],
        "add_cross_attention": [False, None],
        "pad_token_id": [padding, None],
    }
    for name, values in expected.items():
        if (found := getattr(settings, name)) not in values:
            raise ValueError(
                f"{where}: $.{name}: expected {' or '.join(map(repr, values))}, received "
                f"{found!r}. {_REMEDY}"
            )
    unused = _unused_positions(settings.model_type)
    try:
        return BertConfig(
            vocabulary_size=settings.vocab_size,
            num_layers=settings.num_hidden_layers,
            hidden_dim=settings.hidden_size,
            intermediate_dim=settings.intermediate_size,
            num_heads=settings.num_attention_heads,
            max_positions=settings.max_position_embeddings - unused,
            num_token_types=settings.type_vocab_size,
            activation=_ACTIVATIONS[settings.hidden_act],
            layer_norm_epsilon=settings.layer_norm_eps,
            dropout=settings.hidden_dropout_prob,
            attention_dropout=settings.attention_probs_dropout_prob,
        )
    except ValueError as error:
        raise ValueError(f"{where}: {error} {_REMEDY}") from error


def _unused_positions(model_type: str) -> int:
    """The rows before the first position: RoBERTa counts on from the id of its padding, 1."""
    return 2 if model_type == "roberta" else 0


def _renamed(source: WeightSource) -> WeightSource:
    """Names without what stands before them, and those of old files as they are today."""
    names: dict[str, str] = {}
    for stored in source.shapes():
        name = re.sub(r"^(bert|roberta)\.", "", stored)
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        if _UNREAD.fullmatch(name):
            continue
        if name in names:
            raise ValueError(
                f"{source.where}: expected one tensor {name}, found {names[name]} and {stored}."
            )
        names[name] = stored
    return RenamedSource(source, names)


def _without_copies(source: WeightSource, table: str) -> WeightSource:
    """The head without a second table and a second bias, which must be the first.

    Raises:
        ValueError: They are others.
    """
    there = source.shapes()
    names = {name: name for name in there}
    for copy, head in _COPIES.items():
        for stored, original in ((f"{copy}.weight", table), (f"{copy}.bias", f"{head}.bias")):
            if stored not in there:
                continue
            del names[stored]
            if original not in there:
                names[original] = stored
            elif not _equal(source, stored, original):
                raise ValueError(
                    f"{source.where}: expected {stored} to be {original} again, found other "
                    "numbers: the head is not tied to the token table, as our models' is."
                )
    return RenamedSource(source, names)


def _equal(source: WeightSource, first: str, second: str) -> bool:
    shapes = source.shapes()
    return shapes[first] == shapes[second] and all(
        np.array_equal(one, other)
        for one, other in zip(source.pieces(first), source.pieces(second), strict=True)
    )


class _OurRows(WeightSource):
    """The tensors of a RoBERTa with the rows that our ids and positions ask for.

    Padding is 0 in all text stages here, so that RoBERTa's `<s>` (0) and `<pad>` (1) change places;
    and its positions begin at 2.

    Args:
        source: The checkpoint.
        names: Path → name.
    """

    def __init__(self, source: WeightSource, names: Mapping[str, str]) -> None:
        self.where = source.where
        self._source = source
        self._swapped = {names.get(WORDS), names.get(WORD_BIAS)}
        self._positions = names[POSITIONS]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        shapes = self._source.shapes()
        if self._positions in shapes:
            rows, *row = shapes[self._positions]
            shapes[self._positions] = (max(0, rows - _unused_positions("roberta")), *row)
        return shapes

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        return np.concatenate([*self.pieces(name)])

    def check_stored(self, names: Any) -> None:
        """Holds the shapes of tensors against the bytes that are stored for them."""
        self._source.check_stored(names)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis."""
        pieces = self._source.pieces(name)
        if name == self._positions:
            unused = _unused_positions("roberta")
            for piece in pieces:
                yield piece[unused:]
                unused = max(0, unused - len(piece))
            return
        if name in self._swapped:
            first = next(pieces)
            while len(first) < 2:
                first = np.concatenate([first, next(pieces)])
            yield np.concatenate([first[1::-1], first[2:]])
        yield from pieces
