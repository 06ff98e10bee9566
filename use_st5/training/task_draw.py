"""Which task comes next, and how its data are shuffled: functions of the seed and the step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from use_st5.training.task import Task


def drawn_task(tasks: Mapping[str, Task], *, seed: int, step: int) -> str:
    """The name of the task whose turn it is after `step` steps, drawn by the tasks' rates."""
    names = list(tasks)
    rates = np.array([task.rate for task in tasks.values()])
    return names[np.random.default_rng([seed, step]).choice(len(names), p=rates / rates.sum())]


def shuffling_seed(name: str, *, seed: int) -> int:
    """The seed of a task's batches: tasks over the same data shall not see it in one order."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1)[0])
