"""Tasks on corpora: their prepared arrays, and the training of an encoder by several tasks."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from experiments.held_out import without_held_out
from experiments.run import Run
from use_st5.data import PreparedColumn, open_prepared, prepare
from use_st5.losses import TaskLoss
from use_st5.training import ArrayData, Trainer, TrainingArguments

# A function that returns examples, and the columns that they become.
Source = tuple[Callable[[], Iterable[Mapping[str, Any]]], Mapping[str, PreparedColumn]]
# Task → its parts by name.
Arrays = Mapping[str, Mapping[str, ArrayData]]
# Steps of one call from the host in every experiment; one task is drawn for each call.
STEPS_PER_CALL = 10


@dataclasses.dataclass(frozen=True)
class Material:
    """What examples are made of: the data folder, sentences to leave out, and the tokenizer."""

    data: Path
    held_out: Collection[str]
    tokenizer: Any = None


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of a corpus, without those of the test sets: one part, named like the task.

    Attributes:
        read: Data folder → examples, values by name.
        columns: The arrays that they become, by the names that the loss reads.
        every: Every n-th example is taken, if a corpus is larger than a training needs.
        buckets: Widths of batches, as in `ArrayData`; empty: all batches have the same width.
    """

    read: Callable[[Path], Iterable[Mapping[str, Any]]]
    columns: Mapping[str, PreparedColumn]
    buckets: Sequence[int] = ()
    every: int = 1

    def sources(self, task: str, material: Any) -> dict[str, Source]:
        """The parts by name; nothing is read before a part's function is called."""

        def examples() -> Iterator[Mapping[str, Any]]:
            selection = islice(self.read(material.data), 0, None, self.every)
            yield from without_held_out(selection, material.held_out)

        return {task: (examples, self.columns)}

    def array_data(self, arrays: Mapping[str, np.ndarray], _material: Any) -> ArrayData:
        """The batches of a part, from its arrays."""
        return ArrayData(arrays, buckets=self.buckets)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusTask:
    """One of the tasks that train an encoder.

    Attributes:
        name: Short name in logs, files and checkpoints.
        loss: Makes the loss.
        data: `Examples`, or a value with its two methods that has parts of different lengths.
        batch_size: Examples of a step over all replicas; all examples if there are fewer.
        weight: The weight in the draw of tasks; None: the number of its examples.
        part_weights: Part → factor (by default 1). The parts share the weight in proportion to
            their number of examples times this factor.
    """

    name: str
    loss: Callable[[], TaskLoss]
    data: Any
    batch_size: int
    weight: float | None = None
    part_weights: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def weights(self, parts: Mapping[str, ArrayData]) -> dict[str, float]:
        """Part → its weight in the draw."""
        sizes = {name: len(part) * self.part_weights.get(name, 1.0) for name, part in parts.items()}
        total = sum(sizes.values())
        weight = total if self.weight is None else self.weight
        return {name: weight * size / total for name, size in sizes.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """One of the trainings of a model; `name` is the folder of its checkpoints."""

    tasks: Sequence[CorpusTask]
    args: TrainingArguments
    name: str = ""


def prepare_tasks(run: Run, tasks: Iterable[CorpusTask], tokenizer: Any, material: Any) -> None:
    """Writes every part of every task's data as arrays, unless they exist."""
    for task in tasks:
        for name, (examples, columns) in task.data.sources(task.name, material).items():
            print(f"preparing {name}", file=sys.stderr, flush=True)
            prepare(examples(), columns, tokenizer, run.prepared / name, reuse=True)


def open_tasks(run: Run, tasks: Iterable[CorpusTask], material: Any = None) -> Arrays:
    """Opens the arrays that `prepare_tasks` wrote."""
    return {
        task.name: {
            name: task.data.array_data(
                open_prepared(run.prepared / name, columns=columns), material
            )
            for name, (_, columns) in task.data.sources(task.name, None).items()
        }
        for task in tasks
    }


def train_stages(
    run: Run, encoder: Any, stages: Sequence[Stage], arrays: Sequence[Arrays], **options: Any
) -> None:
    """Trains in stages and writes `history.json`; `options` are those of `Trainer`."""
    histories = {}
    for stage, opened in zip(stages, arrays, strict=True):
        data, weights, sizes = {}, {}, {}
        with run.scope():
            for task in stage.tasks:
                loss, parts = task.loss(), opened[task.name]
                for name, weight in task.weights(parts).items():
                    data[name] = parts[name], loss
                    weights[name], sizes[name] = weight, task.batch_size
        history = Trainer(
            encoder,
            data,
            dataclasses.replace(stage.args, seed=run.seed, steps=run.steps or stage.args.steps),
            mixing_weights=weights,
            batch_sizes=sizes,
            folder=run.checkpoints / stage.name,
            strategy=run.strategy,
            batch_files=run.batch_files,
            **options,
        ).train()
        histories[stage.name] = history.to_state()
    run.write("history.json", histories)
