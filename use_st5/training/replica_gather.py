"""Rows of all replicas under `tf.distribute`."""

from __future__ import annotations

import tensorflow as tf

from use_st5.losses.task_loss import Gather


class ReplicaGather(Gather):
    """Gathers rows over the replicas of the strategy that runs the caller, with exact gradients.

    Every replica must call it with the same number of rows.
    """

    def __call__(self, rows: tf.Tensor) -> tf.Tensor:
        """The rows of all replicas in replica order, `[rows, …]` → `[replicas · rows, …]`."""
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        if replicas == 1:
            return rows
        shape = [replicas * rows.shape[0], *rows.shape[1:]]  # lost in the gather between machines
        return tf.ensure_shape(context.all_gather(rows, axis=0), shape)

    def first_row(self, rows: int | tf.Tensor) -> tf.Tensor:
        """Where this replica's own rows begin among the gathered ones, int32 scalar."""
        context = tf.distribute.get_replica_context()
        return tf.cast(context.replica_id_in_sync_group, tf.int32) * tf.cast(rows, tf.int32)
