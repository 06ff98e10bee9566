"""The batches of the tasks under a strategy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import tensorflow as tf

from use_st5.training.strategies import distributed_batches
from use_st5.training.task import Task
from use_st5.training.task_draw import shuffling_seed

Batch = dict[str, tf.Tensor]


class TaskStream:
    """Gives each task's batches, from the seed and the step alone.

    Args:
        tasks: By name.
        strategy: Over whose replicas batches are shared.
        seed: Of each task's shuffling.
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

    def batches(self, name: str, start_step: int) -> Iterator[Batch]:
        """The batches of a task; `start_step` counts where this process begins to read them."""
        if name not in self._iterators:
            task = self.tasks[name]
            batches = distributed_batches(
                self.strategy,
                task.data,
                task.batch_size,
                seed=shuffling_seed(name, seed=self.seed),
                start_step=start_step,
                micro_batches=self.micro_batches,
            )
            self._iterators[name] = iter(batches)
        return self._iterators[name]
