"""Reads cross-encoders from folders of Hugging Face and sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from use_st5.convert.checkpoint import Checkpoint
from use_st5.convert.tokenizer_files import marks_second_text
from use_st5.convert.weights import (
    RenamedSource,
    Target,
    WeightSource,
    assign_weights,
    check_shapes,
    listed,
)
from use_st5.io.records import Count, Positive, Rate
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import family_for
from use_st5.tokenizers.framed_tokenizer import FramedTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer

# Both heads of transformers read the output of the first token.
POOLING = "cls"
_CLASS = "ForSequenceClassification"
_REMEDY = "Give the folder of a classifier of pairs as transformers saves it."


class _Head(NamedTuple):
    """The names of the head's layers: the tanh layer, and the last layer."""

    hidden: str
    logit: str


# By `model_type`.
_HEADS = {
    "bert": _Head("bert.pooler.dense", "classifier"),
    **dict.fromkeys(
        ("roberta", "xlm-roberta", "mpnet"), _Head("classifier.dense", "classifier.out_proj")
    ),
}


class _Settings(msgspec.Struct):
    """Settings of a classifier's head in `config.json`, with the defaults of transformers."""

    hidden_size: Positive
    type_vocab_size: Count = 0
    hidden_dropout_prob: Rate = 0.1
    classifier_dropout: Rate | None = None
    id2label: dict[str, Any] = {}

    @property
    def dropout(self) -> float:
        """Dropout rate before the last layer."""
        rate = self.classifier_dropout
        return self.hidden_dropout_prob if rate is None else rate


def can_read(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a classifier of texts: a BERT or RoBERTa with a head."""
    head = _HEADS.get(str(checkpoint.settings.get("model_type")))
    architectures = checkpoint.settings.get("architectures") or [_CLASS]
    if head is None or not any(str(each).endswith(_CLASS) for each in architectures):
        return False
    return {f"{layer}.weight" for layer in head} <= checkpoint.source.shapes().keys()


def read(
    checkpoint: Checkpoint,
    *,
    vocabulary: Path | None = None,
    dtype: Any = None,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> tuple[CrossEncoderModel, Tokenizer]:
    """A cross-encoder with the weights of a checkpoint, and its tokenizer.

    It reads `BertForSequenceClassification`, whose head is the pooler (a tanh layer over the first
    token) and the classifier after it, and `RobertaForSequenceClassification`, whose head contains
    both layers.

    Arguments and errors are those of `Family.read`. The head stays float32, and has one label.
    """
    settings = checkpoint.settings_as(_Settings, remedy=_REMEDY)
    head = _HEADS[checkpoint.settings["model_type"]]
    names = {f"{layer}.{part}" for layer in head for part in ("weight", "bias")}
    head_source = _only(checkpoint.source, names.__contains__)
    _check_one_label(checkpoint, settings, head_source.shapes()[f"{head.logit}.weight"])
    check_shapes(_stored_shapes(head, settings.hidden_size), head_source)
    encoder_checkpoint = replace(
        checkpoint, source=_only(checkpoint.source, lambda name: name not in names)
    )
    encoder, tokenizer = family_for(encoder_checkpoint, POOLING).read(
        encoder_checkpoint, pooling=POOLING, vocabulary=vocabulary, dtype=dtype, on_tensor=on_tensor
    )
    folder = vocabulary.parent if vocabulary else checkpoint.beside
    assert isinstance(tokenizer, FramedTokenizer)  # as all models of `_HEADS` have
    if not marks_second_text(folder, tokenizer, token_types=settings.type_vocab_size):
        encoder.config = replace(encoder.config, separator_id=None)
    model = CrossEncoderModel(encoder, dropout=settings.dropout)
    model.build()
    assign_weights(_targets(head, model), head_source, on_tensor=on_tensor)
    return model, tokenizer


def _only(source: WeightSource, wanted: Callable[[str], bool]) -> WeightSource:
    return RenamedSource(source, {name: name for name in source.shapes() if wanted(name)})


def _stored_shapes(head: _Head, width: int) -> dict[str, tuple[int, ...]]:
    outputs = {head.hidden: width, head.logit: 1}
    return {f"{layer}.weight": (size, width) for layer, size in outputs.items()} | {
        f"{layer}.bias": (size,) for layer, size in outputs.items()
    }


def _targets(head: _Head, model: CrossEncoderModel) -> Mapping[str, Target]:
    layers = {head.hidden: model.hidden, head.logit: model.logit}
    return {
        f"{name}.weight": Target(layer.kernel, transposed=True) for name, layer in layers.items()
    } | {f"{name}.bias": Target(layer.bias) for name, layer in layers.items()}


def _check_one_label(checkpoint: Checkpoint, settings: _Settings, shape: tuple[int, ...]) -> None:
    labels = shape[0] if shape else 0
    if labels != 1:
        raise ValueError(
            f"{checkpoint.where}: expected a classifier of pairs with one label, whose number is "
            f"the score, found {labels} labels ({listed(map(str, settings.id2label.values()))}). "
            "Give a cross-encoder for similarity or relevance, such as those for MS MARCO or STS."
        )
