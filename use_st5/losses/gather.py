"""Rows of all replicas, as a loss sees them."""

from __future__ import annotations

from typing import Any


class Gather:
    """The trivial case of one replica: its own rows are all rows.

    A loss whose candidates are the rows of the batch calls `gather(rows)` to see those of every
    replica; `use_st5.training.replica_gather.ReplicaGather` is the one under `tf.distribute`.
    """

    def __call__(self, rows: Any) -> Any:
        """The rows of all replicas in replica order, `[rows, …]` → `[replicas · rows, …]`."""
        return rows

    def first_row(self, rows: Any) -> Any:
        """Where this replica's own rows begin among the gathered ones (`rows`: its number)."""
        del rows
        return 0


LOCAL = Gather()
