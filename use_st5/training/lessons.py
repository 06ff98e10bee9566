"""What a file teaches as a task of a recipe: its loss, and the columns that the loss reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from use_st5._streams import batched
from use_st5.cross_encoder import CrossEncoder
from use_st5.data.prepared_column import PreparedColumn
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.losses.vector_loss import VectorLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.fitted_loss import FittedLoss
from use_st5.training.held_out import training_rows
from use_st5.training.model_loading import batch_widths
from use_st5.training.recipe import Examples, RecipeTask
from use_st5.training.settings import Settings
from use_st5.training.sources import Row
from use_st5.training.survey import Survey
from use_st5.training.tasks import DEFINITIONS, UNSCORED_PAIRS, argument_names
from use_st5.training.teachers import judged
from use_st5.training.validation import DevelopmentSet

# Tokens of a neighbour that are predicted.
_DECODED = 20
_AT_ONCE = 2048


def recipe_task(
    found: Survey,
    sets: Collection[DevelopmentSet],
    encoder: TrainableEncoder,
    settings: Settings,
    *,
    name: str,
    limit: int,
    rate: float | None,
    judge: CrossEncoder | None = None,
) -> RecipeTask:
    """The task of one source.

    Args:
        found: The source, read once.
        sets: The rows that do not train.
        encoder: What learns.
        settings: How.
        name: Of the task.
        limit: Tokens of a text that are read.
        rate: Its weight; None: its number of examples.
        judge: Scores pairs that have none.
    """
    _check_scores(found, settings)
    spec = found.source.kind
    make: Callable[[], TaskLoss] = partial(_made, found, encoder, settings)
    width = min(limit, max(2, int(found.lengths.max())))
    columns, values = {}, {}
    for feature in make().features:
        key = spec.key_of(feature.name, found.source.columns)
        if feature.of_text:
            most = width if feature.kind == "ids" else _DECODED
            columns[feature.name] = PreparedColumn(feature.kind, most, key)
        else:
            columns[feature.name] = PreparedColumn(feature.kind)
            values[feature.name] = (key, _number_of(found, key))
    # A decoder reads rows of one width.
    decoded = any(column.kind == "token_ids" for column in columns.values())
    widths = () if decoded else batch_widths(encoder, width)
    if spec.label is not None and settings.head == "fitted":
        make = FittedLoss(make, found, sets, encoder, settings.seed)

    def read(_data: Path) -> Iterator[Row]:
        for row in _usable(found, sets, encoder, judge):
            yield row | {name: change(row[key]) for name, (key, change) in values.items()}

    return RecipeTask(
        name=name,
        loss=make,
        data=Examples(read, columns, buckets=widths),
        batch_size=settings.batch_size,
        rate=rate,
    )


def check_loss_arguments(surveys: Sequence[Survey], settings: Settings) -> None:
    """Refuses an argument that no task's loss has.

    Raises:
        ValueError: There is one.
    """
    known = {name for found in surveys for name in argument_names(found.source.kind.loss)}
    if unknown := set(settings.loss) - known:
        raise ValueError(
            f"loss: expected settings among {', '.join(sorted(known))}, received "
            f"{', '.join(sorted(unknown))}."
        )


def _check_scores(found: Survey, settings: Settings) -> None:
    """Refuses scores below 0 where a loss takes none.

    Raises:
        ValueError: There are some.
    """
    if found.scores is None or found.scores.target(found.lowest) >= 0:
        return
    for name, word in (("objective", "bce"), ("similarity", "angular")):
        if settings.loss.get(name) == word:
            raise ValueError(
                f"{found.source.name}: expected scores from 0 to 1 for the loss with {name}={word},"
                f" found {found.lowest:g}. Give --score-range -1,1, which makes 0 to 1 of -1 to 1."
            )


def _number_of(found: Survey, key: str) -> Callable[[Any], Any]:
    """What makes a number of the value under a key: a label, a score, or the id of a word."""
    if key == found.source.kind.label:
        return found.label_numbers.__getitem__
    if found.source.kind is DEFINITIONS:
        return int
    # A cross-encoder's scores are in 0 … 1.
    return found.scores.target if found.scores else float


def _usable(
    found: Survey,
    sets: Collection[DevelopmentSet],
    encoder: TrainableEncoder,
    judge: CrossEncoder | None,
) -> Iterator[Row]:
    """The rows that train; of definitions those whose word is one token."""
    rows = training_rows(found, sets)
    if found.source.kind is DEFINITIONS:
        return _single_tokens(rows, encoder.vectorizer.single_ids)  # type: ignore[attr-defined]
    return rows if judge is None or found.source.kind is not UNSCORED_PAIRS else judged(rows, judge)


def _single_tokens(
    rows: Iterator[Row], single_ids: Callable[[Sequence[str]], Any]
) -> Iterator[Row]:
    """The rows whose word is one token, with its id."""
    for chunk in batched(rows, _AT_ONCE):
        words = single_ids([row["word"] for row in chunk])
        yield from (row | {"word": int(w)} for row, w in zip(chunk, words, strict=True) if w)


def _made(found: Survey, encoder: TrainableEncoder, settings: Settings) -> TaskLoss:
    made = found.source.kind.make_loss(found, encoder, settings.loss)
    if settings.matryoshka and isinstance(made, VectorLoss):
        return MatryoshkaLoss(made, dimensions=settings.matryoshka)
    return made
