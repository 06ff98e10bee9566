"""Tasks on corpora: their prepared arrays, and the training of an encoder by several tasks."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import keras
import numpy as np

from experiments.held_out import without_held_out
from experiments.run import Run
from use_st5.data import PreparedColumn, open_prepared, prepare
from use_st5.io.progress import progress_lines, watched
from use_st5.io.remote_files import as_written, exists
from use_st5.losses import TaskLoss
from use_st5.training import ArrayData, Trainer, TrainingArguments

if TYPE_CHECKING:  # It needs TensorFlow, and training under JAX does not.
    from use_st5 import TrainableEncoder
    from use_st5.training import History

# A function that returns examples, and the columns that they become.
Source = tuple[Callable[[], Iterable[Mapping[str, Any]]], Mapping[str, PreparedColumn]]
# Task → its parts by name.
Arrays = Mapping[str, Mapping[str, ArrayData]]
# Steps of one call from the host in every experiment; one task is drawn for each call.
STEPS_PER_CALL = 10


class TaskData(Protocol):
    """The data of a task, which may come in several parts: arrays of different lengths."""

    def sources(self, task: str, material: Any) -> Mapping[str, Source]:
        """The parts by name. Nothing is read before a part's function of examples is called."""

    def array_data(self, arrays: Mapping[str, np.ndarray], material: Any) -> ArrayData:
        """The batches of a part, from its arrays."""


@dataclasses.dataclass(frozen=True)
class Material:
    """The data that the examples of tasks are made of.

    Attributes:
        data: Folder of the corpora.
        held_out: The normalized sentences that no training text may be equal to.
        tokenizer: The tokenizer of the encoder.
    """

    data: Path
    held_out: Collection[str]
    tokenizer: Any = None


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of a corpus, or of any function, without those of the test sets.

    Attributes:
        read: Data folder → examples, values by name.
        columns: The arrays that they become, by the names that the loss reads.
        buckets: Widths of batches, as in `ArrayData`; empty: all batches have the same width.
        every: Every n-th example is taken, if a corpus is larger than a training needs.
    """

    read: Callable[[Path], Iterable[Mapping[str, Any]]]
    columns: Mapping[str, PreparedColumn]
    buckets: Sequence[int] = ()
    every: int = 1

    def sources(self, task: str, material: Any) -> dict[str, Source]:
        """One part, with the name of the task."""

        def examples() -> Iterator[Mapping[str, Any]]:
            selection = itertools.islice(self.read(material.data), 0, None, self.every)
            yield from without_held_out(selection, material.held_out)

        return {task: (examples, self.columns)}

    def array_data(self, arrays: Mapping[str, np.ndarray], _material: Any) -> ArrayData:
        """The batches of the unchanged arrays."""
        return ArrayData(arrays, buckets=self.buckets)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusTask:
    """One of the tasks that train an encoder.

    Attributes:
        name: Short name in logs, files and checkpoints.
        loss: Makes the loss.
        data: The data that it learns from.
        batch_size: Examples of a step over all replicas; all examples if there are fewer.
        weight: The weight in the draw of tasks; None: the number of its examples.
        part_weights: Part → factor (by default 1). The parts share the weight in proportion to
            their number of examples times this factor.
    """

    name: str
    loss: Callable[[], TaskLoss]
    data: TaskData
    batch_size: int
    weight: float | None = None
    part_weights: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """One of the trainings that a model goes through.

    Attributes:
        tasks: The tasks that it learns.
        args: Settings of the training.
        name: The name of the folder of its checkpoints.
    """

    tasks: Sequence[CorpusTask]
    args: TrainingArguments
    name: str = ""


def prepare_tasks(run: Run, tasks: Iterable[CorpusTask], tokenizer: Any, material: Any) -> None:
    """Writes every part of every task's data as arrays, unless they exist.

    Args:
        run: The run whose folder of arrays is written; a trial prepares only the rows it reads.
        tasks: The tasks.
        tokenizer: Makes ids of texts.
        material: The value that their data needs, such as a `Material`.

    Raises:
        ValueError: The devices cannot share a batch.
    """
    tasks = [*tasks]
    for task in tasks:
        if task.batch_size % run.replicas:
            raise ValueError(
                f"{task.name}: expected a batch size that {run.replicas} devices can share, "
                f"received {task.batch_size}."
            )
    for task in tasks:
        rows = _trial_rows(run, task)
        for name, (examples, columns) in task.data.sources(task.name, material).items():
            selection = itertools.islice(examples(), rows)
            watched_examples = watched(selection, f"Preparing {name}", rows, transient=True)
            with progress_lines(partial("preparing {}".format, name)):
                prepare(watched_examples, columns, tokenizer, _place(run, name, rows), reuse=True)


def open_tasks(run: Run, tasks: Iterable[CorpusTask], material: Any = None) -> Arrays:
    """Opens the arrays that `prepare_tasks` wrote.

    Args:
        run: The run whose folder of arrays is read.
        tasks: The tasks.
        material: As for `prepare_tasks`; None: no task's batches need it.

    Raises:
        FileNotFoundError: A part was not prepared.
    """
    by_task = {}
    for task in tasks:
        parts, rows = {}, _trial_rows(run, task)
        for name, (_, columns) in task.data.sources(task.name, None).items():
            folder = _place(run, name, rows)
            if not exists(folder):
                raise FileNotFoundError(
                    f"Expected prepared ids, {as_written(folder)}. Where TensorFlow is, run the "
                    "same command with --part prepare, and bring the output folder here."
                )
            arrays = {
                column: array[:rows]
                for column, array in open_prepared(folder, columns=columns).items()
            }
            parts[name] = task.data.array_data(arrays, material)
        by_task[task.name] = parts
    return by_task


def train_tasks(
    run: Run,
    encoder: TrainableEncoder | keras.Model,
    tasks: Sequence[CorpusTask],
    arrays: Arrays,
    args: TrainingArguments,
    *,
    stage: str = "",
    **options: Any,
) -> History:
    """Trains an encoder by tasks, each step by one of them; an interrupted training continues.

    Args:
        run: The run, with the folder of the checkpoints and the strategy.
        encoder: An encoder, or a model.
        tasks: The tasks.
        arrays: The result of `open_tasks`.
        args: Settings of the training; the run gives the seed and, if it has some, the steps.
        stage: Folder of the checkpoints, if an experiment has several trainings.
        **options: Further options of `Trainer`, such as `evaluate`.
    """
    data, weights, sizes = {}, {}, {}
    with run.scope():
        for task in tasks:
            loss, parts = task.loss(), arrays[task.name]
            for name, weight in part_weights(task, parts).items():
                data[name] = parts[name], loss
                weights[name], sizes[name] = weight, task.batch_size
    trainer = Trainer(
        encoder,
        data,
        dataclasses.replace(args, seed=run.seed, steps=run.steps or args.steps),
        mixing_weights=weights,
        batch_sizes=sizes,
        folder=run.checkpoints / stage,
        strategy=run.strategy,
        batch_files=run.batch_files,
        **options,
    )
    return trainer.train()


def train_stages(
    run: Run,
    encoder: TrainableEncoder | keras.Model,
    stages: Sequence[Stage],
    arrays: Sequence[Arrays],
    **options: Any,
) -> None:
    """Trains an encoder in stages, keeps its model, and writes `history.json`.

    Args:
        run: As for `train_tasks`.
        encoder: As for `train_tasks`.
        stages: The stages in order.
        arrays: The result of `open_tasks` for each stage.
        **options: As for `train_tasks`.
    """
    histories = {}
    for stage, its_arrays in zip(stages, arrays, strict=True):
        history = train_tasks(
            run, encoder, stage.tasks, its_arrays, stage.args, stage=stage.name, **options
        )
        histories[stage.name] = history.to_state()
    run.write("history.json", histories)
    run.keep(encoder if isinstance(encoder, keras.Model) else encoder.model)


def steps_of_a_pass(
    tasks: Sequence[CorpusTask], arrays: Arrays, *, cycle: bool = False, call: int = STEPS_PER_CALL
) -> int:
    """The steps of one pass over the examples, rounded up to whole calls from the host.

    Args:
        tasks: The tasks.
        arrays: The result of `open_tasks`.
        cycle: Whether the tasks take turns by their weights. The pass then ends with the cycle in
            which the first of the tasks has used all its examples, so that no task uses its
            examples twice.
        call: Steps of a call.
    """
    passes, weights = [], []
    for task in tasks:
        for name, weight in part_weights(task, arrays[task.name]).items():
            size = len(arrays[task.name][name])
            passes.append(size // min(task.batch_size, size))
            weights.append(weight)
    steps = sum(passes)
    if cycle:
        cycles = min(each / weight for each, weight in zip(passes, weights, strict=True))
        steps = max(1, math.ceil(cycles)) * round(sum(weights))
    return math.ceil(max(1, steps) / call) * call


def part_weights(task: CorpusTask, parts: Mapping[str, ArrayData]) -> dict[str, float]:
    """Part of a task → its weight in the draw."""
    sizes = {name: len(each) * task.part_weights.get(name, 1.0) for name, each in parts.items()}
    total = sum(sizes.values())
    weight = total if task.weight is None else task.weight
    return {name: weight * size / total for name, size in sizes.items()}


def _trial_rows(run: Run, task: CorpusTask) -> int | None:
    """The number of first rows that a trial takes of each part; None: the run is not a trial."""
    return None if run.trial_steps is None else run.trial_steps * task.batch_size


def _place(run: Run, part: str, rows: int | None) -> Path:
    """The folder of a part's arrays; a trial has its own, unless the whole part exists."""
    full_folder = run.prepared / part
    return (
        full_folder
        if rows is None or exists(full_folder)
        else run.prepared / f"{part}.first_{rows}"
    )
