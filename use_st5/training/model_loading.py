"""The model to train, and its teacher: an encoder, its vectors in a file, or a cross-encoder."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from use_st5.data.tables import SkippedRowError, records
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.io.files import cached_path
from use_st5.io.lines import batched
from use_st5.losses.definition_loss import DefinitionLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.models.family import family_of, family_with
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.arguments import FileArguments
from use_st5.training.tasks import DEFINITIONS, TEXTS, TaskSpec
from use_st5.training.trainer import frozen_parts
from use_st5.training.validation import Row

if TYPE_CHECKING:
    from use_st5.training.rows import TrainingFile

FRESH = "fresh:"
# Rows that words outside the vocabulary are hashed into. With one row, all such words of a later
# text would be the same word, which costs ten points of MRR on triplets (docs/own_data_results.md).
_UNKNOWN_ROWS = 500
# SimCSE's dropout: without any dropout the two views of a text are identical.
_DROPOUT_OF_TEXTS = 0.1


def open_model(
    model: str | os.PathLike[str] | TrainableEncoder,
    files: Sequence[TrainingFile],
    settings: FileArguments,
) -> TrainableEncoder:
    """Opens the encoder to train; one that cannot learn the files' tasks is a ValueError."""
    keras.utils.set_random_seed(settings.seed)
    tasks = [file.task for file in files]
    if not isinstance(model, TrainableEncoder) and os.fspath(model).startswith(FRESH):
        encoder = _fresh(os.fspath(model).removeprefix(FRESH), files, settings)
    else:
        _check_vocabulary_unasked(settings, ("words", "bigrams"))
        if isinstance(model, TrainableEncoder):
            encoder = model
        else:
            encoder = TrainableEncoder.load(model)
            family_of(encoder.model).prepare_for_training(encoder.model)
    family = family_of(encoder.model)
    if family.inputs != 1:
        raise ValueError(f"{model}: expected a sentence encoder, received a {family.name}.")
    encoder = _with_dropout(encoder, tasks, settings)
    if any(map(_names_words, tasks)):
        word_model = family_of(encoder.model).word_model(encoder.model)
        if word_model is None:
            raise ValueError(
                "definitions: expected a BERT or RoBERTa with a head for masked words. For others: "
                "--task pairs --column anchor=word --column positive=definition."
            )
        encoder = _with_model(encoder, word_model)
    with frozen_parts(encoder.model, settings.frozen):
        return encoder  # The model has these parts.


def copy_of(model: keras.Model, **config: Any) -> keras.Model:
    """Copies a model with its weights; `config` has changed settings that affect no weights."""
    model_config = model.get_config()
    if config:
        model_config["config"] = {**model_config["config"], **config}
    clone = type(model).from_config(model_config)
    clone.build()
    clone.set_weights(model.get_weights())
    if hasattr(model, "pooler"):  # A BERT's, which is no weight: a cross-encoder starts with it.
        clone.pooler = model.pooler
    return clone


def _names_words(task: TaskSpec) -> bool:
    """Whether a task's loss needs a head for words; a user's own task may have another loss."""
    loss = task.loss if isinstance(task.loss, type) else type(task.loss)
    has_other_loss = issubclass(loss, TaskLoss) and not issubclass(loss, DefinitionLoss)
    return task.stands_in_for(DEFINITIONS) and not has_other_loss


def _fresh(preset: str, files: Sequence[TrainingFile], settings: FileArguments) -> TrainableEncoder:
    """An encoder of a named shape with initial weights; if needed, with the files' vocabulary."""
    from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
    from use_st5.tokenizers.token_tokenizer import UnigramTokenizer
    from use_st5.tokenizers.vocabulary_builder import build_vocabulary

    family = family_with(preset)
    if (tokenizer := family.usual_tokenizer()) is not None:
        _check_vocabulary_unasked(settings, ("words", "bigrams"))
        return TrainableEncoder.fresh(preset, tokenizer)
    grams = NGramTokenizer.kind in family.tokenizers
    if not grams:
        _check_vocabulary_unasked(settings, ("bigrams",))
    vocabulary = build_vocabulary(
        (row[key] for file in files for row in file for key in file.task.texts if key in row),
        num_unigrams=settings.words,
        num_bigrams=settings.bigrams,
        unigram_buckets=_UNKNOWN_ROWS,
    )
    kind = NGramTokenizer if grams else UnigramTokenizer
    return TrainableEncoder.fresh(preset, kind(vocabulary))


def _check_vocabulary_unasked(settings: FileArguments, names: Sequence[str]) -> None:
    """Refuses sizes of a vocabulary that would have no effect."""
    if sizes := [name for name in names if getattr(settings, name) != getattr(FileArguments, name)]:
        takes = "a fresh: USE-DAN takes words and bigrams, a fresh: USE Transformer words"
        raise ValueError(f"{sizes[0]}: expected no value for this model; {takes}.")


def _with_dropout(
    encoder: TrainableEncoder, tasks: Sequence[TaskSpec], settings: FileArguments
) -> TrainableEncoder:
    """The encoder, or a copy with the dropout that is given or that single texts need."""
    rate = settings.dropout
    if rate is None:
        own_rate = getattr(getattr(encoder.model, "config", None), "dropout", None)
        if own_rate != 0 or not any(task.stands_in_for(TEXTS) for task in tasks):
            return encoder
        rate = _DROPOUT_OF_TEXTS
    config = encoder.model.get_config().get("config", {})
    if "dropout" not in config:
        name = type(encoder.model).__name__
        raise ValueError(f"dropout: expected no value; a {name} has no dropout.")
    # Without any dropout, none of another kind acts either, such as that of a USE-DAN's terms.
    names = ("dropout", "attention_dropout") if rate else config
    rates = {name: rate for name in names if name in config and name.endswith("dropout")}
    return _with_model(encoder, copy_of(encoder.model, **rates))


def copied(encoder: TrainableEncoder) -> TrainableEncoder:
    """A copy of an encoder with the same weights, made in the caller's current scope."""
    return _with_model(encoder, copy_of(encoder.model))


def _with_model(encoder: TrainableEncoder, model: keras.Model) -> TrainableEncoder:
    changed = copy.copy(encoder)
    changed.model = model
    return changed


class VectorFile:
    """Vectors of texts, as `use-st5 embed -o FILE.jsonl` writes them; the first of a text counts.

    Args:
        path: A .jsonl or .parquet file with the columns "text" and "embedding".
    """

    def __init__(self, path: Path) -> None:
        rows: dict[str, np.ndarray] = {}
        record: Any
        expected = 'expected rows with "text" and "embedding", finite vectors of one length'
        try:
            for _, record in records(path):
                if not isinstance(record, SkippedRowError):  # A blank line.
                    rows.setdefault(record["text"], np.asarray(record["embedding"], np.float32))
            self._vectors = np.stack([*rows.values()])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: {expected} ({error!s:.80}).") from error
        if self._vectors.ndim != 2 or not np.isfinite(self._vectors).all():
            raise ValueError(f"{path}: {expected}.")
        self._rows = {text: place for place, text in enumerate(rows)}

    def __contains__(self, text: str) -> bool:
        """Whether the file has a vector of the text."""
        return text in self._rows

    @property
    def dimension(self) -> int:
        """The number of values in a vector."""
        return self._vectors.shape[1]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts, which must be in the file, float32 `[texts, dimension]`."""
        return self._vectors[[self._rows[text] for text in texts]]


Teacher = TrainableEncoder | VectorFile | CrossEncoder


def open_teacher(given: str) -> Teacher:
    """Opens the teacher of `--teacher`: a model, a folder, a checkpoint, or a file of vectors."""
    path = cached_path(given)
    if path.is_file():
        return VectorFile(path)
    teacher = TrainableEncoder.load(given)
    return CrossEncoder.of(teacher) if family_of(teacher.model).inputs == 2 else teacher


def scored_by(scorer: CrossEncoder, rows: Iterator[Row]) -> Iterator[Row]:
    """Adds to rows of two texts the score that a cross-encoder gives them, in 0 … 1."""
    for chunk in batched(rows, 2048):
        scores = scorer.predict((row["sentence1"], row["sentence2"]) for row in chunk)
        yield from (row | {"score": float(s)} for row, s in zip(chunk, scores, strict=True))
