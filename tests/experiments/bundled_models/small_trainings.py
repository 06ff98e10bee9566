"""The bundled models' trainings in a size for tests, and a teacher that counts letters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.bundled_models.teacher_text import TeacherText
from experiments.corpus_tasks import CorpusTask
from experiments.minilm import DIMENSION


def fake_teacher(*, layers: int | None = None) -> Callable[[list[str]], np.ndarray]:
    """Like `minilm_teacher`: `list[str] → [n, DIMENSION]`."""
    projection = np.random.default_rng(layers or 6).normal(size=(256, DIMENSION))

    def encode(sentences: list[str]) -> np.ndarray:
        counts = [np.bincount(bytearray(s, "utf-8"), minlength=256) for s in sentences]
        return np.array(counts) @ projection

    return encode


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
        experiment: The whole one.
        text: The sentences; its lengths of related ones must be among the others.
        lengths: As in `Taught`.
        batch_size: Of all tasks.
        **changes: Of the experiment.
    """
    related = {name: each for name, each in lengths.items() if each[:2] in text.related}

    def small(task: CorpusTask) -> CorpusTask:
        loss, data = task.loss, task.data
        if task.name == "skip_thought":
            loss = partial(loss, vocabulary_size=30)
        if task.name in ("teacher", "related"):
            data = dataclasses.replace(data, lengths=lengths if task.name == "teacher" else related)
        return dataclasses.replace(task, loss=loss, data=data, weight=1.0, batch_size=batch_size)

    return dataclasses.replace(
        experiment,
        tasks=tuple(map(small, experiment.tasks)),
        # XLA takes a minute for these steps; the trainer's own tests compile each loss.
        args=dataclasses.replace(experiment.args, evaluation_steps=10, jit_compile=False),
        text=dataclasses.replace(text, teacher=fake_teacher),
        **changes,
    )
