"""Which task comes next, and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from use_st5.training.strategies import distributed_batches
from use_st5.training.task import Task

Batch = dict[str, tf.Tensor]


class TaskStream:
    """Draws tasks by their rates and gives their batches, both from the seed and the step alone.

    Args:
        tasks: By name.
        strategy: Over whose replicas batches are shared.
        seed: Of the draw and of each task's shuffling.
        micro_batches: Into how many micro-batches a step cuts each batch.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        strategy: tf.distribute.Strategy,
        seed: int,
        micro_batches: int,
    ) -> None:
        self.tasks = tasks
        self.strategy = strategy
        self.seed = seed
        self.micro_batches = micro_batches
        self._iterators: dict[str, Iterator[Batch]] = {}

    def draw(self, step: int) -> str:
        """The name of the task whose turn it is after `step` steps."""
        names = list(self.tasks)
        rates = np.array([self.tasks[name].rate for name in names])
        return names[
            np.random.default_rng([self.seed, step]).choice(len(names), p=rates / rates.sum())
        ]

    def batches(self, name: str, start_step: int) -> Iterator[Batch]:
        """The batches of a task; `start_step` counts where this process begins to read them."""
        if name not in self._iterators:
            task = self.tasks[name]
            # Tasks over the same data shall not see it in the same order.
            seed = int(np.random.SeedSequence([self.seed, *name.encode()]).generate_state(1)[0])
            batches = distributed_batches(
                self.strategy,
                task.data,
                task.batch_size,
                seed=seed,
                start_step=start_step,
                micro_batches=self.micro_batches,
            )
            self._iterators[name] = iter(batches)
        return self._iterators[name]
