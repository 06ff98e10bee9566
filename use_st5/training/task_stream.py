"""The batches of the tasks as `tf.data`, shared by the replicas of a strategy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task, shuffling_seed

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


def distributed_batches(
    strategy: tf.distribute.Strategy,
    data: ArrayData,
    batch_size: int,
    *,
    seed: int,
    start_step: int,
    micro_batches: int = 1,
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """The batches of `data`, each replica with its share (see `array_dataset`).

    The batch of all replicas together is the one that a single device would get.
    """

    def of_this_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
        replicas = context.num_replicas_in_sync
        local = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * local
        return array_dataset(
            data,
            batch_size,
            seed=seed,
            start_step=start_step,
            replica_count=replicas,
            replicas=range(first, first + local),
            micro_batches=micro_batches,
        )

    return strategy.distribute_datasets_from_function(of_this_host)


_PREFETCH = 4


def array_dataset(
    data: ArrayData,
    batch_size: int,
    *,
    seed: int,
    start_step: int = 0,
    replica_count: int = 1,
    replicas: range = range(1),
    micro_batches: int = 1,
) -> tf.data.Dataset:
    """The batches from `start_step` on, without end.

    Args:
        data: Where they come from.
        batch_size: Examples of a batch over all replicas.
        seed: Of the shuffling.
        start_step: The first batch to give.
        replica_count: How many replicas share each batch.
        replicas: Whose parts to give, one element after the other, in this order.
        micro_batches: Into how many micro-batches a step cuts each batch. Each of them is
            shared by all replicas, so that it holds the same rows whatever their number.

    Returns:
        Dicts of tensors `[batch_size / replica_count, …]`.

    Raises:
        ValueError: The batch is larger than the data or cannot be cut into equal parts, or
            so many distinct examples were not found.
    """
    data.check_batch(batch_size, seed=seed, step=start_step, parts=replica_count * micro_batches)
    part = batch_size // replica_count
    names = list(data.arrays)

    def rows_of(element: np.ndarray) -> list[np.ndarray]:
        step, local = divmod(int(element), len(replicas))
        rows = data.rows(start_step + step, batch_size, seed)
        rows = rows.reshape(micro_batches, replica_count, -1)[:, replicas[local]].reshape(-1)
        return list(data.take(rows).values())

    def load(element: tf.Tensor) -> dict[str, tf.Tensor]:
        types = [tf.as_dtype(data.arrays[name].dtype) for name in names]
        values = tf.numpy_function(rows_of, [element], types, stateful=False)
        for name, value in zip(names, values, strict=True):
            value.set_shape([part, *data.row_shape(name)])
        return dict(zip(names, values, strict=True))

    # One call at a time: the rows are read in order, and the epoch's permutation is kept once.
    elements = tf.data.Dataset.range(np.iinfo(np.int64).max)
    return elements.map(load, num_parallel_calls=1).prefetch(_PREFETCH)
