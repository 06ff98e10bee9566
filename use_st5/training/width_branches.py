"""A step with a trace for each width of its batches, so that all sizes are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import tensorflow as tf

from use_st5.training.task import Task

Batch = dict[str, tf.Tensor]
Step = Callable[[Batch], tf.Tensor]


class WidthBranches:
    """Calls a step with a batch of known sizes, for each width that the task's batches have.

    A TPU compiles a program for known sizes. `TPUStrategy` pads a tensor of unknown size, and
    computes with a dynamic shape. The batches of a task have few widths, so the step is traced for
    each of them. Each batch chooses its trace.

    Args:
        task: The task, whose data say which widths there are.
        names: The features that the step reads.
        strategy: The strategy whose replicas share a batch.
    """

    def __init__(
        self, task: Task, names: Sequence[str], *, strategy: tf.distribute.Strategy
    ) -> None:
        data, rows = task.data, task.batch_size // strategy.num_replicas_in_sync
        varying_names = [name for name in names if None in data.row_shape(name)]
        self._strategy = strategy
        self._widest = max(varying_names, key=lambda name: data.arrays[name].shape[1], default=None)
        self._shapes: dict[int, dict[str, list[int | None]]] = {}
        if self._widest is None:
            return
        for bucket in data.buckets:
            shapes = {name: [rows, *data.row_shape(name, width=bucket)] for name in names}
            self._shapes.setdefault(shapes[self._widest][1], shapes)

    def __call__(self, step: Step, batch: Batch) -> tf.Tensor:
        """The step's result for a batch; all parts of its replicas have the same width."""
        if self._widest is None:
            return step(batch)
        branches = [
            functools.partial(_with_shapes, step, batch, shapes) for shapes in self._shapes.values()
        ]
        part = self._strategy.experimental_local_results(batch[self._widest])[0]
        narrower = tf.shape(part)[1] > tf.constant([*self._shapes])
        return tf.switch_case(tf.reduce_sum(tf.cast(narrower, tf.int32)), branches)


def _with_shapes(step: Step, batch: Batch, shapes: dict[str, list[int | None]]) -> tf.Tensor:
    shaped_batch = {
        name: tf.nest.map_structure(
            functools.partial(tf.ensure_shape, shape=shape), batch[name], expand_composites=True
        )
        for name, shape in shapes.items()
    }
    return step(shaped_batch)
