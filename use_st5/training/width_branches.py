"""A step with a trace for each width of its batches, so that all sizes are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import tensorflow as tf

from use_st5.training.task import Task

Batch = dict[str, tf.Tensor]
Step = Callable[[Batch], tf.Tensor]


class WidthBranches:
    """Calls a step with a batch of known sizes, whichever of the task's widths it has.

    A TPU compiles a program for sizes that are known. `TPUStrategy` pads a size that is unknown,
    and computes with one that may change. The widths of a task's batches are few, so that the step
    is traced for each of them; the batch that comes chooses the trace.

    Args:
        task: Its data say which widths there are.
        names: The features that the step reads.
        strategy: Over whose replicas a batch is shared.
    """

    def __init__(
        self, task: Task, names: Sequence[str], *, strategy: tf.distribute.Strategy
    ) -> None:
        data, rows = task.data, task.batch_size // strategy.num_replicas_in_sync
        varying = [name for name in names if None in data.row_shape(name)]
        self._strategy = strategy
        self._widest = max(varying, key=lambda name: data.arrays[name].shape[1], default=None)
        self._shapes: dict[int, dict[str, list[int | None]]] = {}
        if self._widest is None:
            return
        for bucket in data.buckets:
            shapes = {name: [rows, *data.row_shape(name, width=bucket)] for name in names}
            self._shapes.setdefault(shapes[self._widest][1], shapes)

    def __call__(self, step: Step, batch: Batch) -> tf.Tensor:
        """What the step gives for a batch, whose replicas' parts are all of one width."""
        if self._widest is None:
            return step(batch)
        branches = [
            functools.partial(_with_shapes, step, batch, shapes) for shapes in self._shapes.values()
        ]
        part = self._strategy.experimental_local_results(batch[self._widest])[0]
        narrower = tf.shape(part)[1] > tf.constant([*self._shapes])
        return tf.switch_case(tf.reduce_sum(tf.cast(narrower, tf.int32)), branches)


def _with_shapes(step: Step, batch: Batch, shapes: dict[str, list[int | None]]) -> tf.Tensor:
    known = {
        name: tf.nest.map_structure(
            functools.partial(tf.ensure_shape, shape=shape), batch[name], expand_composites=True
        )
        for name, shape in shapes.items()
    }
    return step(known)
