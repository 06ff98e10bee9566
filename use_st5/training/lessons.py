"""What a file teaches as a task of a recipe: its loss, and the columns that the loss reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from use_st5._streams import batched
from use_st5.cross_encoder import CrossEncoder
from use_st5.data.prepared_column import PreparedColumn
from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.definition_loss import DefinitionLoss
from use_st5.losses.input_response_loss import InputResponseLoss
from use_st5.losses.label_loss import LabelLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.scored_pair_loss import ScoredPairLoss
from use_st5.losses.simcse_loss import SimCSELoss
from use_st5.losses.skip_thought_loss import SkipThoughtLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.losses.vector_loss import VectorLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.columns import (
    DEFINITIONS,
    LABELS,
    NEIGHBOURS,
    PAIRS,
    SCORED_PAIRS,
    UNSCORED_PAIRS,
)
from use_st5.training.fitted_loss import FittedLoss
from use_st5.training.held_out import training_rows
from use_st5.training.model_loading import batch_widths
from use_st5.training.recipe import Examples, RecipeTask
from use_st5.training.settings import Settings
from use_st5.training.sources import Row
from use_st5.training.survey import Survey
from use_st5.training.teachers import judged
from use_st5.training.validation import DevelopmentSet

# Tokens of a neighbour that are predicted, and the words among which they are.
_DECODED, _DECODER_WORDS = 20, 8000
_AT_ONCE = 2048

_Loss = Callable[..., TaskLoss]
# What a loss is made by, its columns' keys in a row, and a row's value for those that are no text.
_Lesson = tuple[_Loss, Mapping[str, str], Mapping[str, Callable[[Any], Any]]]


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
    loss, keys, values = _lesson(found, encoder.vectorizer.vocabulary.size)
    numbers = {"label": PreparedColumn("label"), "word": PreparedColumn("label")}
    numbers["score"] = PreparedColumn("score")
    width = min(limit, max(2, int(found.lengths.max())))
    columns = {
        column: numbers[column] if column in values else PreparedColumn("ids", width, key)
        for column, key in keys.items()
    }
    widths = batch_widths(encoder, width)
    if found.source.kind is NEIGHBOURS:  # Its decoder reads rows of one width.
        columns |= {each: PreparedColumn("token_ids", _DECODED) for each in ("previous", "next")}
        widths = ()

    make: Callable[[], TaskLoss] = partial(_made, loss, settings)
    if found.source.kind.label is not None and settings.head == "fitted":
        make = FittedLoss(make, found, sets, encoder, settings.seed)

    def read(_data: Path) -> Iterator[Row]:
        for row in _usable(found, sets, encoder, judge):
            yield row | {key: change(row[keys[key]]) for key, change in values.items()}

    return RecipeTask(
        name=name,
        loss=make,
        data=Examples(read, columns, buckets=widths),
        batch_size=settings.batch_size,
        rate=rate,
    )


def check_loss_settings(tasks: Sequence[RecipeTask], settings: Settings) -> None:
    """Refuses an argument that no task's loss has, and makes every loss once.

    Raises:
        ValueError: There is one, or a loss does not take its value.
    """
    known = {name for task in tasks for name in _arguments(_lesson_loss(task.loss))}
    if unknown := set(settings.loss) - known:
        raise ValueError(
            f"loss: expected settings among {', '.join(sorted(known))}, received "
            f"{', '.join(sorted(unknown))}."
        )
    for task in tasks:
        task.loss()


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


def _lesson(found: Survey, vocabulary_size: int) -> _Lesson:
    kind = found.source.kind
    same = {key: key for key in kind.columns if key in found.source.columns}
    if kind is PAIRS:
        negatives = len(same) - len(kind.needed)
        renamed = dict(zip(_negative_names(negatives), [*same][2:], strict=True))
        columns = {"anchor": "anchor", "positive": "positive", **renamed}
        loss = partial(ContrastiveLoss, temperature=0.05)
        return partial(loss, hard_negatives=negatives), columns, {}
    if kind in (SCORED_PAIRS, UNSCORED_PAIRS):
        columns = {"first": "sentence1", "second": "sentence2", "score": "score"}
        # A cross-encoder's scores are in 0 … 1.
        return ScoredPairLoss, columns, {"score": found.scores.target if found.scores else float}
    if kind is DEFINITIONS:
        return DefinitionLoss, {"definition": "definition", "word": "word"}, {"word": int}
    if kind.label is not None:
        numbers = found.label_numbers
        classifying = LabelLoss if kind is LABELS else ClassificationLoss
        return partial(classifying, num_classes=len(numbers)), same, {"label": numbers.__getitem__}
    if kind is NEIGHBOURS:
        words = min(_DECODER_WORDS, vocabulary_size)
        loss = partial(SkipThoughtLoss, vocabulary_size=words, hidden_dim=128, intermediate_dim=512)
        return loss, {"sentence": "text"}, {}
    if kind.name == "texts":
        return SimCSELoss, {"sentence": "text"}, {}
    # The response's own network is thrown away with the loss: whoever searches with the encoder
    # alone has no use for it.
    return partial(InputResponseLoss, hidden_dims=()), same, {}


def _negative_names(count: int) -> list[str]:
    return ["negative", *(f"negative_{n}" for n in range(2, count + 1))][:count]


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


def _made(loss: _Loss, settings: Settings) -> TaskLoss:
    known = _arguments(loss)
    mine = {name: value for name, value in settings.loss.items() if name in known}
    try:
        made = loss(**mine)
    except (TypeError, ValueError) as error:
        raise ValueError(f"loss: {error}") from error
    if settings.matryoshka and isinstance(made, VectorLoss):
        return MatryoshkaLoss(made, dimensions=settings.matryoshka)
    return made


def _lesson_loss(make: Any) -> _Loss:
    """What makes the loss of a task before settings and layers are given to it."""
    lesson: Any = make.make if isinstance(make, FittedLoss) else make
    return lesson.args[0]


def _arguments(loss: _Loss) -> list[str]:
    """The names of what a loss can be told."""
    made = loss
    while isinstance(made, partial):
        made = made.func
    parameters = inspect.signature(made).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
