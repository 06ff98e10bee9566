"""The batches of the tasks as `tf.data`, shared by the replicas of a strategy."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from use_st5.training.array_data import ArrayData
from use_st5.training.batch_files import BatchFiles, endless
from use_st5.training.strategies import wait_for_workers
from use_st5.training.task import Task, shuffling_seed

Batch = dict[str, tf.Tensor]


class TaskStream:
    """The batches of each task, as functions of seed and step, shared by a strategy's replicas.

    They come from record files in the folder `files` (see `BatchFiles`), or from the arrays. A step
    cuts each batch into `micro_batches`.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        strategy: tf.distribute.Strategy,
        seed: int,
        micro_batches: int,
        files: str | None = None,
    ) -> None:
        self.tasks = tasks
        self.strategy = strategy
        self.seed = seed
        self.micro_batches = micro_batches
        self._iterators: dict[str, Iterator[Batch]] = {}
        self._files = (
            {} if files is None else {name: self._batch_files(name, files) for name in tasks}
        )
        self._ends: Mapping[str, int] = {}

    def prepare(self, starts: Mapping[str, int], ends: Mapping[str, int], *, writes: bool) -> None:
        """If batches come from files, this process writes the missing ones, or waits for them.

        `starts` and `ends`: task → number of batches trained on at the start and the end of a run.
        """
        if self._files and writes:
            for name, files in self._files.items():
                files.write(starts[name], ends[name])
        if self._files:
            self._ends = ends
            wait_for_workers(self.strategy)

    def batches(self, name: str, start_step: int) -> Iterator[Batch]:
        """A task's batches; `start_step` only matters when this process begins to read them."""
        if name not in self._iterators:
            distributed = self.strategy.distribute_datasets_from_function(
                functools.partial(self._host_dataset, name, start_step)
            )
            self._iterators[name] = iter(distributed)
        return self._iterators[name]

    def close(self) -> None:
        """Ends the pipelines; the next call of `batches` starts one anew, at its `start_step`.

        The thread of a pipeline runs Python for its rows (`array_dataset`). If Python's garbage
        collector ended the pipeline, it could do so in that same thread, which would then wait for
        itself, and garbage would never be collected again in this process.
        """
        self._iterators.clear()

    def _host_dataset(
        self, name: str, start_step: int, context: tf.distribute.InputContext
    ) -> tf.data.Dataset:
        """Data of a host's replicas; all hosts together read the batches of a single device."""
        replicas = context.num_replicas_in_sync
        local_count = replicas // context.num_input_pipelines
        first_replica = context.input_pipeline_id * local_count
        share = range(first_replica, first_replica + local_count)
        if name in self._files:
            end = self._ends[name]
            files = self._files[name]
            return files.dataset(start_step, end, replica_count=replicas, replicas=share)
        return array_dataset(
            self.tasks[name].data,
            self.tasks[name].batch_size,
            seed=shuffling_seed(name, seed=self.seed),
            start_step=start_step,
            replica_count=replicas,
            replicas=share,
            micro_batches=self.micro_batches,
        )

    def _batch_files(self, name: str, folder: str) -> BatchFiles:
        task = self.tasks[name]
        return BatchFiles(
            folder,
            name,
            task.data,
            columns=[feature.name for feature in task.loss.features],
            batch_size=task.batch_size,
            seed=shuffling_seed(name, seed=self.seed),
            micro_batches=self.micro_batches,
            replicas=self.strategy.num_replicas_in_sync,
        )


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
    """The batches from `start_step` on, without end, as dicts of tensors `[rows, …]`.

    An element is the part of one of the `replicas`, of `replica_count` that share each batch. They
    share each of its micro-batches, so that these hold the same rows for any number of replicas.
    """
    data.check_batch(batch_size, parts=replica_count * micro_batches)
    positions = np.arange(batch_size).reshape(micro_batches, replica_count, -1)
    names = list(data.arrays)

    def rows_of(element: np.ndarray) -> list[np.ndarray]:
        step, local = divmod(int(element), len(replicas))
        part = positions[:, replicas[local]].reshape(-1)
        return list(data.batch(start_step + step, batch_size, seed, part=part).values())

    def load(element: tf.Tensor) -> dict[str, tf.Tensor]:
        types = [tf.as_dtype(data.arrays[name].dtype) for name in names]
        values = tf.numpy_function(rows_of, [element], types, stateful=False)
        for name, value in zip(names, values, strict=True):
            value.set_shape([batch_size // replica_count, *data.row_shape(name)])
        return dict(zip(names, values, strict=True))

    # One call at a time: the rows are read in order, and the epoch's permutation is kept once.
    elements = tf.data.Dataset.range(np.iinfo(np.int64).max)
    return endless(elements.map(load, num_parallel_calls=1))
