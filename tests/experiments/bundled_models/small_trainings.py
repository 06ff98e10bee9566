"""The bundled models' trainings in a size for tests, and a teacher that counts letters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bundled_models.teacher import HINT_DIM, TEACHER_DIM, Teacher
from experiments.bundled_models.teacher_text import Sample, TeacherText
from experiments.corpus_tasks import CorpusTask
from use_st5.training import TrainingArguments

TEXT = TeacherText(
    sources={
        "sts_train": Sample(None),
        "inference": Sample(None, fewest=1),
        "novels": Sample(10, fewest=1),
        "talk": Sample(20, fewest=1),
        "captions": Sample(40),
        "opinions": Sample(5),
        "examples": Sample(None, fewest=1),
    },
    spans=30,
    span_sources=("novels", "talk"),
    related={(5, 9): 12},
    related_sources=("captions",),
)


def fake_teacher(sentences: list[str]) -> np.ndarray:
    """Like `both_teachers`: `list[str] → [n, TEACHER_DIM + HINT_DIM]`."""
    projection = np.random.default_rng(6).normal(size=(256, TEACHER_DIM + HINT_DIM))
    counts = [np.bincount(bytearray(s, "utf-8"), minlength=256) for s in sentences]
    return np.array(counts) @ projection / 100


def run_with_teacher(
    experiment: Any, data: Path, output: Path, *, teach: Any = fake_teacher, **options: Any
) -> dict[str, float]:
    """Runs an experiment; if it lacks teachers' vectors, computes them and runs it again."""
    try:
        return experiment.run(data, output, **options)
    except FileNotFoundError as error:
        if "experiments.bundled_models.teacher" not in str(error):
            raise
    Teacher(output / "teacher").answer(teach)
    return experiment.run(data, output, **options)


def small_training(
    experiment: Any,
    text: TeacherText,
    lengths: Mapping[str, tuple[int, int, int]],
    *,
    batch_size: int = 8,
    **changes: object,
) -> Any:
    """A training with a teacher, with little text, small batches and equal weights.

    Args:
        experiment: The experiment in full size.
        text: The sentences; the lengths of its related sentences must be among `lengths`.
        lengths: As in `TeacherSentences`.
        batch_size: The batch size of every task.
        **changes: Fields of the experiment to replace.
    """
    related = {name: each for name, each in lengths.items() if each[:2] in text.related}

    def small(task: CorpusTask) -> CorpusTask:
        loss, data = task.loss, task.data
        if task.name == "skip_thought":
            loss = partial(loss, vocabulary_size=30)
        if task.name in ("teacher", "related"):
            data = dataclasses.replace(data, lengths=lengths if task.name == "teacher" else related)
        return dataclasses.replace(task, loss=loss, data=data, weight=1.0, batch_size=batch_size)

    def quick(args: TrainingArguments) -> TrainingArguments:
        # XLA takes a minute for these steps; the trainer's own tests compile each loss.
        return dataclasses.replace(args, evaluation_steps=10, jit_compile=False)

    if hasattr(experiment, "stages"):
        changes["stages"] = [
            dataclasses.replace(stage, tasks=tuple(map(small, stage.tasks)), args=quick(stage.args))
            for stage in experiment.stages
        ]
    else:
        changes |= {"tasks": tuple(map(small, experiment.tasks)), "args": quick(experiment.args)}
    return dataclasses.replace(experiment, text=text, **changes)
