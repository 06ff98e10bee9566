"""The tensors of a TensorFlow checkpoint."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from use_st5.convert.weights import WeightSource
from use_st5.io.records import read_bounded

INDEX = ".index"

# The suffix that `tf.train.Checkpoint` adds to a variable's path.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
# The names of tensors that are no weights: the optimizer's variables of each weight (those of
# Keras; those of Mesh TensorFlow, `q_slot_v`, `q_slot_vr` and so on; those of google-research/bert,
# `kernel/adam_m`), the step, and the tree of the checkpoint's objects.
_NO_WEIGHT = re.compile(
    r".*/\.OPTIMIZER_SLOT/.*|.*_slot_\w+|.*/adam_[mv]|global_step|_CHECKPOINTABLE_OBJECT_GRAPH"
)


class TensorFlowSource(WeightSource):
    """The tensors of a TensorFlow checkpoint: `model.ckpt-N.index` and its data files.

    Names are those of TensorFlow 1, or paths below the object that was saved, such as
    `model/encoder/kernel`; optimizers are left out.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Imported here, because families import this module, and models train without TensorFlow.
        import tensorflow as tf

        self.where = _prefix(Path(path))
        with _damage_reported(f"{self.where}: expected a TensorFlow checkpoint"):
            self._reader = tf.train.load_checkpoint(self.where)
            shapes = self._reader.get_variable_to_shape_map()
        names = [name for name in shapes if not _NO_WEIGHT.fullmatch(name)]
        self._stored = {name.removesuffix(_VALUE): name for name in names}
        self._shapes = {name: tuple(shapes[stored]) for name, stored in self._stored.items()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return dict(self._shapes)

    def check_stored(self, names: Iterable[str]) -> None:
        """Compares the shapes of tensors with the size of the data files."""
        dtypes = self._reader.get_variable_to_dtype_map()
        expected = sum(
            math.prod(self._shapes[name]) * dtypes[self._stored[name]].size for name in names
        )
        prefix = Path(self.where)
        files = prefix.parent.glob(f"{glob.escape(prefix.name)}.data-*")
        data_size = sum(file.stat().st_size for file in files)
        if data_size < expected:
            raise ValueError(
                f"{self.where}{INDEX}: expected data files of {expected:,} bytes or more for these "
                f"tensors, found {data_size:,}. Copy the checkpoint again."
            )

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        with _damage_reported(f"{self.where}: expected to read {name}"):
            return self._reader.get_tensor(self._stored[name])


@contextmanager
def _damage_reported(expected: str) -> Iterator[None]:
    """Turns TensorFlow's error for a damaged file into a `ValueError` that names the file."""
    import tensorflow as tf

    try:
        yield
    except (tf.errors.OpError, ValueError, IndexError) as error:  # OutOfRange is an IndexError.
        raise ValueError(f"{expected} ({error!s:.200}). Copy it again.") from error


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
        newest = _newest(path)
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


def _newest(folder: Path) -> str | None:
    """The newest checkpoint that a folder's file `checkpoint` names, if there is one."""
    state = folder / "checkpoint"
    if not state.is_file():
        return None
    # Checks the size, because TensorFlow reads the file as a whole.
    read_bounded(state, limit=2**20, remedy="Give the checkpoint itself: its path up to .index.")
    import tensorflow as tf

    try:
        newest = tf.train.latest_checkpoint(os.fspath(folder))
    except ValueError as error:
        raise ValueError(f"{state}: expected names of checkpoints ({error}).") from error
    if newest is not None and Path(newest).resolve().parent != folder.resolve():
        raise ValueError(
            f"{state}: expected checkpoints in the same folder, found {newest}. Give the "
            "checkpoint itself: its path up to .index."
        )
    return newest
