"""The plan of a training: what is learnt and measured, in how many steps, as a recipe."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from use_st5.cross_encoder import CrossEncoder
from use_st5.models.family import Family, known_family
from use_st5.models.lora import apply_lora
from use_st5.models.lora_adapters import LoRAAdapters
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.course import Brief, Course, texts_of_row
from use_st5.training.fitted_loss import FittedLoss
from use_st5.training.held_out import without_held_out
from use_st5.training.lessons import check_loss_arguments, recipe_task
from use_st5.training.measured_sets import measured_sets, short_names
from use_st5.training.model_loading import FRESH, token_limit
from use_st5.training.pair_cycles import pair_cycles
from use_st5.training.recipe import Recipe, RecipeTask, Run, Stage, keep_model
from use_st5.training.settings import Settings, completed
from use_st5.training.sources import Source
from use_st5.training.survey import Survey, survey
from use_st5.training.tasks import NEIGHBOURS, TEXTS, UNSCORED_PAIRS
from use_st5.training.teachers import Teacher, VectorFile, open_teacher, taught_vectors
from use_st5.training.training_loop import STEPS_PER_CALL
from use_st5.training.validation import Encode, Scores, measure, test_scores

# Fewer steps than this, and each is a call of its own: calls are what measurements lie between.
_FEW_STEPS = 100


def plan(
    model: str | os.PathLike[str] | TrainableEncoder,
    encoder: TrainableEncoder,
    sources: Sequence[Source],
    dev: Sequence[Source],
    test: Sequence[Source],
    settings: Settings,
    *,
    replicas: int = 1,
) -> Course:
    """Reads the files once, and makes the recipe.

    Args:
        model: The start as it was named.
        encoder: What learns.
        sources: What it learns from.
        dev: What validates; none: rows of the sources are held out.
        test: What tests, once, at the end.
        settings: How.
        replicas: How many share a batch.

    Raises:
        ValueError: A file teaches nothing, or an option does not fit the encoder or the tasks.
    """
    scores = settings.score_range
    surveys = [survey(source, encoder.vectorizer, scores=scores) for source in sources]
    names = short_names(sources)
    sets, tests = measured_sets(surveys, dev, test, encoder.vectorizer)
    surveys = [without_held_out(found, [*sets, *tests]) for found in surveys]
    start = (model.name or "an encoder") if isinstance(model, TrainableEncoder) else str(model)
    settings = dataclasses.replace(settings, storage=_storage(encoder, settings))
    brief = Brief(start, encoder, settings, surveys, sets, tests, dev, test)
    teacher = open_teacher(settings.teacher) if settings.teacher else None
    unscored = any(source.kind is UNSCORED_PAIRS for source in sources)
    if isinstance(teacher, CrossEncoder) and not unscored:
        raise ValueError(
            "teacher: a cross-encoder scores pairs of sentence1 and sentence2 that have no score, "
            "of which no file holds any. Give such pairs, or an encoder as the teacher."
        )
    if unscored and not isinstance(teacher, CrossEncoder):
        return _in_cycles(brief, teacher)
    return _in_steps(brief, teacher, names, replicas)


def _storage(encoder: TrainableEncoder, settings: Settings) -> str:
    """How the export stores large matrices: as the start does, unless it is said.

    Raises:
        ValueError: The family cannot be exported so.
    """
    family = known_family(encoder.model)
    known = family.storages if family else ("float32",)
    if (storage := settings.storage or encoder.stored) in known:
        return storage
    raise ValueError(f"storage: expected {' or '.join(known)} for this model, received {storage}.")


def _in_cycles(brief: Brief, teacher: TrainableEncoder | VectorFile | None) -> Course:
    """The course of an encoder and a cross-encoder that teach each other."""
    settings = brief.settings
    if others := {found.source.kind.name for found in brief.surveys} - {UNSCORED_PAIRS.name}:
        raise ValueError(
            f"Pairs without a score are learnt in cycles, apart from {', '.join(sorted(others))}: "
            "train by the one, then by the other; or let a trained cross-encoder score the pairs, "
            "with --teacher FOLDER."
        )
    recipe = pair_cycles(
        brief.encoder, teacher, brief.surveys, brief.sets, brief.tests, settings, _metadata(brief)
    )
    pairs = sum(found.kept for found in brief.surveys)
    # A cross-encoder reads both texts, in both orders.
    texts = settings.cycles * pairs * (4 + 2 * settings.epochs)
    return Course(
        **vars(brief),
        monitor=measure(brief.sets)[1],
        steps=settings.cycles,
        texts=texts,
        recipe=recipe,
    )


def _in_steps(brief: Brief, teacher: Teacher | None, names: Sequence[str], replicas: int) -> Course:
    """The course of a recipe of one stage."""
    surveys, family = brief.surveys, known_family(brief.encoder.model)
    settings = completed(
        brief.settings,
        family,
        [found.source.kind for found in surveys],
        fresh=brief.start.startswith(FRESH),
        taught=teacher is not None,
    )
    brief = dataclasses.replace(brief, settings=settings)
    scores, monitor = measure(brief.sets)
    steps, per_call = _steps(surveys, settings)
    stage = Stage(
        tasks=tuple(_tasks(brief, teacher, names, replicas)),
        optimizer=settings.make_optimizer(),
        steps=steps,
        evaluate_every=max(per_call, steps // settings.evaluations // per_call * per_call),
        monitor=monitor,
        best=True,
        freeze=lambda run: settings.freeze or (),
        options=_options(settings, per_call, family),
    )
    return Course(
        **vars(brief),
        monitor=monitor,
        steps=steps,
        texts=steps * settings.batch_size * texts_of_row(surveys),
        recipe=_recipe(brief, stage, scores),
    )


def _recipe(brief: Brief, stage: Stage, scores: Callable[[Encode], Scores]) -> Recipe:
    encoder, settings = brief.encoder, brief.settings
    adapters: list[LoRAAdapters] = []
    return Recipe(
        name=Path(brief.start.removeprefix(FRESH)).name + "_tuned",
        vectorizer=lambda run: encoder.vectorizer,
        model=lambda run: _learning(encoder, settings, adapters),
        stages=(stage,),
        prepare=lambda run: _fit_losses(stage),
        measure=lambda run: scores,
        final=lambda run: lambda encode: scores(encode) | test_scores(brief.tests, encode),
        held_out=lambda data: set(),
        keep=lambda run, trained: _keep(run, trained, adapters),
        storage=settings.storage or encoder.stored,
        max_length=encoder.max_length,
        metadata=_metadata(brief),
    )


def _tasks(
    brief: Brief, teacher: Teacher | None, names: Sequence[str], replicas: int
) -> list[RecipeTask]:
    encoder, settings, surveys, sets = brief.encoder, brief.settings, brief.surveys, brief.held
    limit, total = token_limit(encoder, settings), sum(found.kept for found in surveys)
    judge = teacher if isinstance(teacher, CrossEncoder) else None
    taught = teacher is not None and judge is None
    weighed = settings.keep or taught or any(found.source.rate for found in surveys)
    check_loss_arguments(surveys, settings)
    tasks = []
    for found, name in zip(surveys, names, strict=True):
        if taught and found.source.kind in (TEXTS, NEIGHBOURS):
            continue  # The teacher says more of them than they do themselves.
        share = len(surveys) * found.kept / total
        rate = (found.source.rate or share) if weighed else None
        part = math.lcm(settings.micro_batch or 1, replicas)
        kept = min(settings.batch_size, found.kept) // part * part
        task = recipe_task(
            found, sets, encoder, settings, name=name, limit=limit, rate=rate, judge=judge
        )
        tasks.append(dataclasses.replace(task, batch_size=max(1, kept)))
    teachers: list[tuple[str, TrainableEncoder | VectorFile, float]] = []
    if settings.keep:
        teachers.append(("start", encoder, settings.keep))
    if teacher is not None and not isinstance(teacher, CrossEncoder):
        teachers.append(("teacher", teacher, 1.0))
    for name, each, weight in teachers:
        rate = weight * len(surveys)
        tasks.append(
            taught_vectors(
                each, encoder, surveys, sets, settings, name=name, limit=limit, rate=rate
            )
        )
    return tasks


def _fit_losses(stage: Stage) -> None:
    """Fits what shall begin fitted; before the training, which a checkpoint may then go on with."""
    for task in stage.tasks:
        if isinstance(task.loss, FittedLoss):
            task.loss.fit()


def _steps(surveys: Sequence[Survey], settings: Settings) -> tuple[int, int]:
    """Optimizer steps, and how many of them a call from the host makes."""
    examples = sum(found.kept for found in surveys) * (1 + settings.keep)
    steps = settings.steps or math.ceil(settings.epochs * examples / settings.batch_size)
    return steps, STEPS_PER_CALL if steps >= _FEW_STEPS else 1


def _options(settings: Settings, per_call: int, family: Family | None) -> dict[str, Any]:
    import tensorflow as tf

    return {
        "jit_compile": (family is not None and family.compile_on_cpu)
        or bool(tf.config.list_physical_devices("GPU")),
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


def _metadata(brief: Brief) -> dict[str, Any]:
    inherited = {"languages", "license"} & set(brief.encoder.metadata)
    return {name: brief.encoder.metadata[name] for name in sorted(inherited)} | {
        "trained_from": brief.start
    }
