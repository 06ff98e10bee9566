"""The numbers of a training run as TensorBoard's files."""

from __future__ import annotations

import os

import tensorflow as tf

# What TensorBoard's own `scalar` would write; TensorFlow 2.21 comes without TensorBoard.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
)


class TensorBoardWriter:
    """Writes scalars where TensorBoard finds them.

    Args:
        folder: Where the files go.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = tf.summary.create_file_writer(os.fspath(folder))

    def write(self, step: int, scalars: dict[str, float]) -> None:
        """Writes numbers by name."""
        with self._writer.as_default(step=step):
            for name, value in scalars.items():
                tf.summary.write(name, tf.constant(value), metadata=_SCALAR)

    def flush(self) -> None:
        """Writes what is buffered."""
        self._writer.flush()
