"""The tensors of a TensorFlow checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from use_st5.convert.weight_source import WeightSource

INDEX = ".index"


class TensorFlowSource(WeightSource):
    """What `tf.train.load_checkpoint` reads: `model.ckpt-N.index` and its data files.

    Args:
        path: The checkpoint's prefix (`model.ckpt-N`), its index, or the folder, of which the
            newest is taken that its file `checkpoint` names.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: It is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.where = _prefix(Path(path))
        try:
            self._reader = tf.train.load_checkpoint(self.where)
        except (tf.errors.OpError, ValueError) as error:
            raise ValueError(
                f"{self.where}: expected a TensorFlow checkpoint ({error}). Copy it again."
            ) from error

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        shapes = self._reader.get_variable_to_shape_map()
        return {name: tuple(shape) for name, shape in shapes.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        try:
            return self._reader.get_tensor(name)
        except (tf.errors.OpError, IndexError) as error:
            raise ValueError(
                f"{self.where}: expected to read {name} ({error}). Copy the checkpoint again."
            ) from error


def is_tensorflow_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a prefix, an index or a folder of TensorFlow checkpoints."""
    try:
        _prefix(Path(path))
    except FileNotFoundError:
        return False
    return True


def _prefix(path: Path) -> str:
    text = os.fspath(path)
    if path.is_dir():
        newest = tf.train.latest_checkpoint(text)
        if newest is None:
            raise FileNotFoundError(
                f"{path}: expected a TensorFlow checkpoint, found no file `checkpoint` that names "
                "one. Give the checkpoint itself: its path up to .index."
            )
        return newest
    prefix = text.removesuffix(INDEX)
    if not Path(prefix + INDEX).is_file():
        raise FileNotFoundError(f"{prefix}{INDEX}: expected a TensorFlow checkpoint, found none.")
    return prefix
