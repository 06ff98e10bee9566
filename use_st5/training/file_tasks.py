"""The tasks of a training on files: the rows of each, its loss, and the columns that it reads."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from use_st5.data.prepared import prepare
from use_st5.data.prepared_column import PreparedColumn
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.io.progress import watched
from use_st5.io.streams import batched
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.losses.vector_loss import VectorLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.argument_checks import check_type
from use_st5.training.arguments import FileArguments
from use_st5.training.array_data import ArrayData
from use_st5.training.column_prompts import with_prompts
from use_st5.training.dataset_stats import DatasetStats
from use_st5.training.datasets import DECODED_TOKENS, in_buckets
from use_st5.training.held_out import training_rows
from use_st5.training.sources import Row
from use_st5.training.tasks import DEFINITIONS, UNSCORED_PAIRS, TaskSpec, argument_names
from use_st5.training.teachers import VectorFile, scored_by, texts_with_vectors
from use_st5.training.validation import ValidationSet

# Loss weights for the start model's own similarities, and for a teacher, as for `use_dan_en`.
_OWN_WEIGHTS: dict[str, Any] = {"vector_weight": 0.0, "similarity_weight": 1.0}
_TEACHER_WEIGHTS: dict[str, Any] = {
    **{"similarity_weight": 10.0, "ranking_weight": 1.0, "temperature": 0.1}
}
_AT_ONCE = 2048


@dataclasses.dataclass(frozen=True)
class FileTask:
    """The part of a training that comes from one file or a teacher.

    Attributes:
        name: Short name in logs, files and checkpoints.
        make_loss: Makes the loss.
        rows: Reads the training rows.
        columns: Feature of the loss → the column from which its array is made.
        weight: Its weight in the draw of tasks; None: the number of its rows.
        stats: The statistics of the file; None: the rows are those of a teacher.
    """

    name: str
    make_loss: Callable[[], TaskLoss]
    rows: Callable[[], Iterator[Row]]
    columns: Mapping[str, PreparedColumn]
    weight: float | None = None
    stats: DatasetStats | None = None

    def prepared(self, encoder: TrainableEncoder, folder: Path) -> ArrayData:
        """The rows as arrays, in the task's folder inside `folder`; existing arrays are reused."""
        rows = watched(self.rows(), f"Preparing {self.name}", None, transient=True)
        arrays = prepare(rows, self.columns, encoder.tokenizer, folder / self.name, reuse=True)
        return in_buckets(arrays, self.columns)


def file_task(
    found: DatasetStats,
    sets: Collection[ValidationSet],
    encoder: TrainableEncoder,
    arguments: FileArguments,
    *,
    name: str,
    weight: float | None,
    scorer: CrossEncoder | None = None,
) -> FileTask:
    """The task of one file; `sets` are rows that are not trained on.

    `scorer` scores pairs that have no score. A ValueError says that the loss does not take an
    argument, or does not take the scores of the file.
    """
    _check_scores(found, arguments)
    spec = found.source.kind
    make_loss = partial(_made_loss, found, encoder, arguments)
    width = _width([found], encoder, arguments)
    columns: dict[str, PreparedColumn] = {}
    numbers: dict[str, tuple[str, Callable[[Any], Any]]] = {}
    row_keys = {*found.source.table.column_names} | ({"score"} if scorer else set())
    for feature in make_loss().features:
        key = spec.key_of(feature.name, found.source.columns)
        if key not in row_keys:
            raise ValueError(
                f"{found.source.name}: expected a column {key}, which the loss reads, found "
                f"{', '.join(found.source.columns)}. Add the column, or change the loss or its "
                "arguments."
            )
        if feature.of_text:
            max_tokens = width if feature.kind == "ids" else DECODED_TOKENS
            columns[feature.name] = PreparedColumn(feature.kind, max_tokens, key)
        else:
            columns[feature.name] = PreparedColumn(feature.kind)
            numbers[feature.name] = (key, _number_of(found, key))

    text_keys = {column.key for column in columns.values() if column.kind == "ids"}
    prompts = {key: text for key, text in found.source.prompts.items() if key in text_keys}

    def rows() -> Iterator[Row]:
        for row in _usable(found, sets, encoder, scorer, names_words="word" in numbers):
            values = {name: number(row[key]) for name, (key, number) in numbers.items()}
            yield with_prompts(row, prompts) | values

    return FileTask(name, make_loss, rows, columns, weight, found)


def teacher_task(
    teacher: TrainableEncoder | VectorFile,
    encoder: TrainableEncoder,
    stats: Sequence[DatasetStats],
    sets: Collection[ValidationSet],
    arguments: FileArguments,
    *,
    name: str,
    weight: float,
) -> FileTask:
    """The task to learn a teacher's vectors of the training texts, made before the first step.

    If the teacher is the encoder itself, its similarities are kept. If the teacher is a file of
    vectors, only texts with a vector in it are used; if there are none, it is a ValueError. `sets`
    are rows that are not trained on.
    """
    # Another teacher gets no prompts of the files: it has its own, if any.
    is_encoder = teacher is encoder
    texts = (
        (prompted[key] if is_encoder else row[key], prompted[key])
        for file_stats in stats
        for row in training_rows(file_stats, sets)
        for prompted in [with_prompts(row, file_stats.source.prompts)]
        for key in file_stats.source.kind.texts
        if key in row
    )
    text_pairs = [*dict.fromkeys(texts)]
    if isinstance(teacher, VectorFile):
        covered_texts = {*texts_with_vectors([text for text, _ in text_pairs], teacher)}
        text_pairs = [each for each in text_pairs if each[0] in covered_texts]
    width = _width(stats, encoder, arguments)

    def rows() -> Iterator[Row]:
        vectors = teacher.encode([text for text, _ in text_pairs])
        for (_, text), vector in zip(text_pairs, vectors, strict=True):
            yield {"sentence": text, "teacher": vector}

    weights = _OWN_WEIGHTS if teacher is encoder else _TEACHER_WEIGHTS
    columns = {"sentence": PreparedColumn("ids", width), "teacher": PreparedColumn("vector")}

    def make_loss() -> TaskLoss:
        loss = TeacherLoss(teacher_dim=teacher.dimension, **weights)
        return _with_dimensions(loss, arguments)

    return FileTask(name, make_loss, rows, columns, weight)


def check_loss_arguments(kinds: Sequence[TaskSpec], arguments: FileArguments) -> None:
    """Refuses an argument that no task's loss takes, and a value of another type."""
    if isinstance(arguments.loss, TaskLoss):
        return
    valid_names = {name for kind in kinds for name in argument_names(kind.loss)}
    if unknown_names := set(arguments.loss) - valid_names:
        raise ValueError(
            f"loss: expected arguments among {', '.join(sorted(valid_names))}, received "
            f"{', '.join(sorted(unknown_names))}."
        )
    for kind in kinds:
        with contextlib.suppress(NameError):  # A user's loss may name types only for a checker.
            parameters = inspect.signature(kind.loss, eval_str=True).parameters
            for name in set(arguments.loss) & set(parameters):
                if (annotation := parameters[name].annotation) is not inspect.Parameter.empty:
                    check_type(f"loss, {name}", arguments.loss[name], annotation)


def check_dimensions(
    tasks: Sequence[FileTask], encoder: TrainableEncoder, arguments: FileArguments
) -> None:
    """Refuses `matryoshka_dimensions` that have no effect, or are larger than the vectors."""
    dimensions = arguments.matryoshka_dimensions
    if not dimensions:
        return
    if max(dimensions) > encoder.dimension:
        raise ValueError(
            f"matryoshka_dimensions: expected numbers up to {encoder.dimension}, the dimension of "
            f"the encoder, received {dimensions}."
        )
    losses = [task.make_loss() for task in tasks]
    if not any(isinstance(loss, MatryoshkaLoss) for loss in losses):
        raise ValueError(
            "matryoshka_dimensions: expected a task whose loss needs only vectors, received "
            f"{', '.join(type(loss).__name__ for loss in losses)}. Leave it out, or choose another "
            "task."
        )


def _width(
    stats: Sequence[DatasetStats], encoder: TrainableEncoder, arguments: FileArguments
) -> int:
    """The number of tokens of the longest text, as far as training reads it."""
    longest = max(2, *(int(found.lengths.max()) for found in stats))
    return min(arguments.text_length(encoder.max_length), longest)


def _made_loss(
    found: DatasetStats, encoder: TrainableEncoder, arguments: FileArguments
) -> TaskLoss:
    loss = found.source.kind.make_loss(found, encoder, arguments.loss)
    return _with_dimensions(loss, arguments)


def _with_dimensions(loss: TaskLoss, arguments: FileArguments) -> TaskLoss:
    if arguments.matryoshka_dimensions and isinstance(loss, VectorLoss):
        return MatryoshkaLoss(loss, dimensions=arguments.matryoshka_dimensions)
    return loss


def _check_scores(found: DatasetStats, arguments: FileArguments) -> None:
    """Refuses scores below 0 if the loss does not take them."""
    if isinstance(arguments.loss, TaskLoss):
        return
    if found.scores is None or found.scores.target(found.lowest) >= 0:
        return
    for name, word in (("objective", "bce"), ("similarity", "angular")):
        if arguments.loss.get(name) == word:
            raise ValueError(
                f"{found.source.name}: expected scores from 0 to 1 for the loss with {name}={word},"
                f" found {found.lowest:g}. Give --score-range -1,1 to scale -1 … 1 to 0 … 1."
            )


def _number_of(found: DatasetStats, key: str) -> Callable[[Any], Any]:
    """A function that makes a number of a key's value: a label, a score, or the id of a word."""
    if key == found.source.kind.label:
        return found.label_numbers.__getitem__
    if found.source.kind.stands_in_for(DEFINITIONS):
        return int
    # A cross-encoder's scores are in 0 … 1.
    return found.scores.target if found.scores else float


def _usable(
    found: DatasetStats,
    sets: Collection[ValidationSet],
    encoder: TrainableEncoder,
    scorer: CrossEncoder | None,
    *,
    names_words: bool,
) -> Iterator[Row]:
    """The training rows; if a loss predicts the defined words, those whose word is one token."""
    rows = training_rows(found, sets)
    if names_words and found.source.kind.stands_in_for(DEFINITIONS):
        return _single_tokens(rows, encoder.tokenizer.single_ids)  # type: ignore[attr-defined]
    if scorer is not None and found.source.kind.stands_in_for(UNSCORED_PAIRS):
        return scored_by(scorer, rows)
    return rows


def _single_tokens(
    rows: Iterator[Row], single_ids: Callable[[Sequence[str]], Any]
) -> Iterator[Row]:
    """The rows whose word is one token, with the id of the token instead of the word."""
    for chunk in batched(rows, _AT_ONCE):
        words = single_ids([row["word"] for row in chunk])
        yield from (row | {"word": int(w)} for row, w in zip(chunk, words, strict=True) if w)
