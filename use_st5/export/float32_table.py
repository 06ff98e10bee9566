"""An embedding table stored as it was trained."""

from __future__ import annotations

import tensorflow as tf


class Float32Table:
    """A trainable table of float32 embeddings.

    Args:
        table: float32 `[rows, dim]`.
    """

    storage = "float32"

    def __init__(self, table: tf.Variable) -> None:
        self.variables = [table]
        self.trainable_variables = [table]
        self._table = table

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Gathers rows: int32 `[...]` → float32 `[..., dim]`, no dense read of the table."""
        return tf.gather(self._table, ids)

    def tracked(self) -> dict[str, tf.Variable]:
        """The variables by the names under which the SavedModel's root holds them."""
        return {"table": self._table}
