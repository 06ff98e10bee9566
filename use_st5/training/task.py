"""The tasks that train an encoder together, and the task of each step."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from use_st5.data.arrays import ArrayData
from use_st5.losses.task_loss import TaskLoss
from use_st5.training.arguments import Order


@dataclasses.dataclass
class Task:
    """A loss, the data it learns from, and how often it is drawn.

    Attributes:
        name: Short name in logs, metrics and checkpoints.
        loss: The loss to minimise. Tasks may share a loss, and so its head, for the same kind of
            data in arrays of different lengths, so that short texts are not padded to the longest.
        data: Arrays that hold the loss's features (others are ignored).
        mixing_weight: Weight of the task in the draw; the trainer divides by the sum over all
            tasks. In a cycle: the number of its steps before the next task's turn.
        batch_size: Examples per step over all replicas.
    """

    name: str
    loss: TaskLoss
    data: ArrayData
    mixing_weight: float = 1.0
    batch_size: int = 128

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"Expected a task name that is an identifier, not {self.name!r}.")
        if not (self.mixing_weight > 0 and np.isfinite(self.mixing_weight)) or self.batch_size < 1:
            raise ValueError(f"{self.name}: expected a positive mixing_weight and batch_size.")

    def check_features(self) -> None:
        """Refuses data that lack what the loss reads."""
        problems = [
            problem
            for feature in self.loss.features
            if (problem := feature.problem(self.data.arrays.get(feature.name)))
        ]
        if not problems:
            return
        text = f"{'; '.join(problems)}. It has {', '.join(self.data.arrays)}"
        raise ValueError(f"The data of task '{self.name}' does not fit its loss: {text}.")


def task_in_turn(tasks: Mapping[str, Task], *, order: Order, seed: int, step: int) -> str:
    """The name of the task whose turn it is after `step` steps.

    "drawn": at random, in proportion to the tasks' weights; "cycle": one task after the other, each
    for as many steps as its weight says, then again from the first.
    """
    names = list(tasks)
    if order == "cycle":
        ends = list(itertools.accumulate(task.mixing_weight for task in tasks.values()))
        return next(n for n, end in zip(names, ends, strict=True) if step % ends[-1] < end)
    weights = np.array([task.mixing_weight for task in tasks.values()])
    return names[np.random.default_rng([seed, step]).choice(len(names), p=weights / weights.sum())]


def steps_of_tasks(
    tasks: Mapping[str, Task], steps: range, *, order: Order, seed: int, steps_per_turn: int
) -> dict[str, int]:
    """Counts how many of some consecutive steps each task has, by `task_in_turn`.

    `steps_per_turn`: this many steps, from a multiple of the number on, belong to one task.
    """
    counts = dict.fromkeys(tasks, 0)
    for step in steps:
        turn_start = step // steps_per_turn * steps_per_turn
        if step == turn_start or step == steps.start:
            name = task_in_turn(tasks, order=order, seed=seed, step=turn_start)
        counts[name] += 1
    return counts


def shuffling_seed(name: str, *, seed: int) -> int:
    """The seed of a task's batches: tasks with the same data read it in different orders."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1)[0])


def micro_batches(batch: Mapping[str, Any], parts: int) -> list[dict[str, Any]]:
    """Cuts a batch of tensors `[rows, …]` into `parts` parts of equal size, in order."""
    columns = {name: ops.split(tensor, parts) for name, tensor in batch.items()}
    return [{name: columns[name][part] for name in batch} for part in range(parts)]
