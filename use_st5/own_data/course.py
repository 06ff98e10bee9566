"""The plan of a training: what is learnt and measured, in how many steps, as a recipe."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras

from use_st5.models.lora import apply_lora
from use_st5.models.lora_adapters import LoRAAdapters
from use_st5.own_data.columns import NEIGHBOURS, TEXTS
from use_st5.own_data.development import MEASURES, DevelopmentSet, measure
from use_st5.own_data.learner import FRESH, family_name, token_limit
from use_st5.own_data.lessons import check_loss_settings, recipe_task, taught_vectors
from use_st5.own_data.settings import Settings, usual_rate
from use_st5.own_data.sources import Source
from use_st5.own_data.survey import (
    MOST_DEVELOPMENT_ROWS,
    Survey,
    development_set,
    held_out_rows,
    spread,
    survey,
    without_development,
)
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.recipe import Recipe, RecipeTask, Run, Stage, keep_model
from use_st5.training.training_loop import STEPS_PER_CALL

# Fewer steps than this, and each is a call of its own: calls are what measurements lie between.
_FEW_STEPS = 100
# More rows of a development file are not measured: each measurement would take minutes.
_MOST_MEASURED = 5 * MOST_DEVELOPMENT_ROWS
# Texts that are encoded to guess the time; a step takes as long as three readings.
_TIMED, _READINGS = 128, 3


@dataclasses.dataclass(frozen=True)
class Course:
    """What a training will do.

    Attributes:
        start: The model as it was named.
        encoder: What learns.
        settings: How.
        surveys: What the files hold.
        sets: What is measured.
        held_out: Whether the sets are rows of the training files.
        monitor: The score that the best step is chosen by.
        rate: The learning rate.
        steps: Optimizer steps.
        recipe: What is run.
    """

    start: str
    encoder: TrainableEncoder
    settings: Settings
    surveys: Sequence[Survey]
    sets: Sequence[DevelopmentSet]
    held_out: bool
    monitor: str
    rate: float
    steps: int
    recipe: Recipe

    def lines(self) -> Iterator[str]:
        """What is said before the first step."""
        limit = token_limit(self.encoder, self.settings)
        for found in self.surveys:
            yield from found.lines(limit)
        yield from self.measuring()
        parameters = sum(math.prod(v.shape) for v in self.encoder.model.trainable_variables)
        yield (
            f"model: {self.start}, a {family_name(self.encoder) or 'model'} of "
            f"{self.encoder.dimension} dimensions, {parameters:,} weights"
        )
        loss = ", ".join(f"{name} {value}" for name, value in self.settings.loss.items())
        if self.settings.teacher:
            yield f"teacher: {self.settings.teacher}"
        yield (
            f"training: {self.steps:,} steps of {self.settings.batch_size}, learning rate "
            f"{self.rate:.3g}" + (f", loss with {loss}" if loss else "")
        )
        yield f"expected time: about {_shown_time(self._seconds())} on this machine"

    def measuring(self) -> Iterator[str]:
        """What is measured on which rows."""
        if self.held_out:
            count = sum(len(each.rows) for each in self.sets)
            yield (
                f"no --dev: {count:,} of the training rows are held out to measure by; the scores "
                "say how it does on such rows, not on others"
            )
        for each in self.sets:
            name, what = MEASURES[each.kind.name]
            yield f"measured on {each.name}: {name}, {what}; {len(each.rows):,} rows"
        for found in self.surveys:
            if not self.held_out and (found.left_out or found.shared):
                yield (
                    f"{found.source.name}: {found.left_out:,} rows stand in the development file, "
                    f"too, and are left out; {found.shared:,} others share a text with it"
                )

    def _seconds(self) -> float:
        """A guess at the time of the training, by that of reading some of its texts."""
        texts = [
            row[key]
            for found in self.surveys
            for row in found.first
            for key in found.source.kind.texts
            if key in row
        ]
        texts = (texts * _TIMED)[:_TIMED]
        self.encoder.encode(texts)  # The graph is made.
        began = time.monotonic()
        self.encoder.encode(texts)
        each = (time.monotonic() - began) / _TIMED
        of_row = min(3, max(len(found.source.kind.texts) for found in self.surveys))
        measured = sum(len(one.texts()) for one in self.sets) * (self.settings.evaluations + 2)
        return each * (self.steps * self.settings.batch_size * of_row * _READINGS + measured)


def plan(
    model: str | os.PathLike[str] | TrainableEncoder,
    encoder: TrainableEncoder,
    sources: Sequence[Source],
    measured: Sequence[Source],
    settings: Settings,
) -> Course:
    """Reads the files once, and makes the recipe.

    Args:
        model: The start as it was named.
        encoder: What learns.
        sources: What it learns from.
        measured: What measures; none: rows of the sources are held out.
        settings: How.

    Raises:
        ValueError: A file teaches nothing, or an option does not fit the encoder or the tasks.
    """
    surveys = [survey(source, encoder.vectorizer) for source in sources]
    names = _names(sources)
    sets = _development_sets(surveys, measured, encoder, names)
    surveys = [without_development(found, sets) for found in surveys]
    scores, monitor = measure(sets)
    start = (model.name or "an encoder") if isinstance(model, TrainableEncoder) else str(model)
    rate = settings.learning_rate or usual_rate(
        family_name(encoder),
        sources[0].kind.name,
        lora=settings.lora_rank is not None,
        fresh=start.startswith(FRESH),
    )
    tasks = _tasks(surveys, sets, encoder, settings, names)
    steps, per_call = _steps(surveys, settings)
    every = max(per_call, steps // settings.evaluations // per_call * per_call)
    stage = Stage(
        tasks=tuple(tasks),
        optimizer=settings.make_optimizer(rate),
        steps=steps,
        evaluate_every=every,
        monitor=monitor,
        best=True,
        freeze=lambda run: settings.freeze,
        options=_options(settings, per_call, family_name(encoder)),
    )
    adapters: list[LoRAAdapters] = []
    recipe = Recipe(
        name=_name(start),
        vectorizer=lambda run: encoder.vectorizer,
        model=lambda run: _learning(encoder, settings, adapters),
        stages=(stage,),
        measure=lambda run: scores,
        held_out=lambda data: set(),
        keep=lambda run, trained: _keep(run, trained, adapters),
        storage=settings.storage,
        max_length=encoder.max_length,
        metadata=_metadata(encoder, start),
    )
    return Course(
        start, encoder, settings, surveys, sets, not measured, monitor, rate, steps, recipe
    )


def _development_sets(
    surveys: Sequence[Survey],
    measured: Sequence[Source],
    encoder: TrainableEncoder,
    names: Sequence[str],
) -> list[DevelopmentSet]:
    if not measured:
        return [
            development_set(found, held_out_rows(found), name)
            for found, name in zip(surveys, names, strict=True)
        ]
    by_kind = {found.source.kind.name: found for found in surveys}
    sets = []
    for source, name in zip(measured, _names(measured), strict=True):
        own = survey(source, encoder.vectorizer)
        rows = spread(source, own.rows, _MOST_MEASURED)
        if source.kind.label is None:
            sets.append(DevelopmentSet(name, source.kind, rows))
            continue
        # Its labels are those that the training file teaches.
        taught = by_kind.get(source.kind.name)
        if taught is None:
            raise ValueError(
                f"{source.name}: measures labels, and no training file has the task "
                f"{source.kind.name}, whose rows a classifier could be fitted to."
            )
        if unknown := set(own.classes) - set(taught.classes):
            raise ValueError(
                f"{source.name}: expected the labels of {taught.source.name}, "
                f"{', '.join(sorted(taught.classes)[:8])}; received others: "
                f"{', '.join(sorted(unknown)[:8])}."
            )
        sets.append(development_set(taught, rows, name))
    return sets


def _tasks(
    surveys: Sequence[Survey],
    sets: Sequence[DevelopmentSet],
    encoder: TrainableEncoder,
    settings: Settings,
    names: Sequence[str],
) -> list[RecipeTask]:
    limit, total = token_limit(encoder, settings), sum(found.kept for found in surveys)
    weighed = settings.keep or settings.teacher or any(found.source.rate for found in surveys)
    tasks = []
    for found, name in zip(surveys, names, strict=True):
        if settings.teacher and found.source.kind in (TEXTS, NEIGHBOURS):
            continue  # The teacher says more of them than they do themselves.
        share = len(surveys) * found.kept / total
        rate = (found.source.rate or share) if weighed else None
        kept = min(settings.batch_size, found.kept)
        kept = kept // (settings.micro_batch or 1) * (settings.micro_batch or 1)
        task = recipe_task(found, sets, encoder, settings, name=name, limit=limit, rate=rate)
        tasks.append(dataclasses.replace(task, batch_size=max(1, kept)))
    check_loss_settings(tasks, settings)
    teachers = [("start", encoder, settings.keep)] if settings.keep else []
    if settings.teacher:
        teachers.append(("teacher", TrainableEncoder.load(settings.teacher), 1.0))
    for name, teacher, weight in teachers:
        rate = weight * len(surveys)
        tasks.append(
            taught_vectors(
                teacher, encoder, surveys, sets, settings, name=name, limit=limit, rate=rate
            )
        )
    return tasks


def _steps(surveys: Sequence[Survey], settings: Settings) -> tuple[int, int]:
    """Optimizer steps, and how many of them a call from the host makes."""
    examples = sum(found.kept for found in surveys) * (1 + settings.keep)
    steps = settings.steps or math.ceil(settings.epochs * examples / settings.batch_size)
    per_call = STEPS_PER_CALL if steps >= _FEW_STEPS else 1
    return math.ceil(steps / per_call) * per_call, per_call


def _options(settings: Settings, per_call: int, family: str | None) -> dict[str, Any]:
    import tensorflow as tf

    return {
        # On a CPU XLA takes minutes for a deep model's program of each width of batches. Most of a
        # USE-DAN's step is the update of its table, which it halves.
        "jit_compile": family == "use_dan" or bool(tf.config.list_physical_devices("GPU")),
        "steps_per_call": per_call,
        "evaluate_start": True,
        "patience": settings.patience,
        "gradient_cache": settings.batch_size // (settings.micro_batch or settings.batch_size),
        "keep_checkpoints": 1,
    }


def _learning(
    encoder: TrainableEncoder, settings: Settings, adapters: list[LoRAAdapters]
) -> keras.Model:
    if settings.lora_rank is not None:
        adapters.append(apply_lora(encoder.model, rank=settings.lora_rank, seed=settings.seed))
    return encoder.model


def _keep(run: Run, model: keras.Model, adapters: list[LoRAAdapters]) -> None:
    for each in adapters:
        each.merge()
    keep_model(run, model)


def _metadata(encoder: TrainableEncoder, start: str) -> dict[str, Any]:
    inherited = {"languages", "license"} & set(encoder.metadata)
    return {name: encoder.metadata[name] for name in sorted(inherited)} | {"trained_from": start}


def _names(sources: Sequence[Source]) -> list[str]:
    """Short names, each another, that may be those of tasks."""
    names: list[str] = []
    for source in sources:
        stem = re.sub(r"\W+", "_", Path(source.name).name.split(".")[0]).strip("_") or "data"
        stem = stem if stem.isidentifier() else f"data_{stem}"
        names.append(stem if stem not in names else f"{stem}_{len(names) + 1}")
    return names


def _name(start: str) -> str:
    return Path(start.removeprefix(FRESH)).name + "_tuned"


def _shown_time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
