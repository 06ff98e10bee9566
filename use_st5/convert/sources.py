"""The tensors of safetensors files and of TensorFlow checkpoints."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Registers bfloat16 with NumPy: safetensors returns tensors of this dtype.
import ml_dtypes  # noqa: F401
import numpy as np
from safetensors import safe_open

from use_st5.convert.weights import WeightSource
from use_st5.io.records import InnerPath, check_record, read_bounded, read_record

SAFETENSORS = "model.safetensors"
_SHARDS = "model.safetensors.index.json"
_PIECE = 2**24  # bytes
_INDEX_LIMIT = 2**22  # bytes: fifty times the index of the largest T5
_AGAIN = "Copy it again."
_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")


class SafetensorsSource(WeightSource):
    """`model.safetensors`, or the shards that `model.safetensors.index.json` names."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.where = os.fspath(folder)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._homes: dict[str, Path] = {}
        folder, index = Path(folder), Path(folder, _SHARDS)
        names: set[str] = {SAFETENSORS}
        if not (folder / SAFETENSORS).is_file():
            if not index.is_file():
                remedy = "Save a model of .bin files, which can run code, with safetensors."
                raise FileNotFoundError(f"{folder}: expected {SAFETENSORS} or shards. {remedy}")
            content = read_record(index, dict[str, Any], remedy=_AGAIN, limit=_INDEX_LIMIT)
            kind, where = dict[str, InnerPath], f"{index}: weight_map"
            shards = check_record(content.get("weight_map"), kind, where=where, remedy=_AGAIN)
            names = {*shards.values()}
        for path in sorted(folder / name for name in names):
            try:
                with safe_open(path, framework="np") as file:
                    for name in file.keys():  # noqa: SIM118 (no mapping)
                        tensor = file.get_slice(name)
                        self._shapes[name], self._homes[name] = tuple(tensor.get_shape()), path
                        if (dtype := tensor.get_dtype()) not in _DTYPES:
                            raise ValueError(f"{name:.200} has {dtype}: save the model in float32")
            except Exception as error:  # safetensors' own class is not public
                reason = f"{type(error).__name__}: {error!s:.200}"
                raise ValueError(f"{path}: is no safetensors file ({reason}). {_AGAIN}") from error

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return dict(self._shapes)

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        # Opened again for each tensor: an open file keeps all that was read from it in memory.
        with safe_open(self._homes[name], framework="np") as file:
            return file.get_tensor(name)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces of some rows, a few megabytes each."""
        rows, *row = self._shapes[name] or (1,)
        # Computed for float32; smaller dtypes make smaller pieces.
        step = max(1, _PIECE // max(1, 4 * math.prod(row)))
        if step >= rows:
            yield self.read(name)
            return
        for start in range(0, rows, step):
            with safe_open(self._homes[name], framework="np") as file:
                yield file.get_slice(name)[start : min(start + step, rows)]


_INDEX = ".index"
# The suffix that `tf.train.Checkpoint` adds to a variable's path.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
# The names of tensors that are no weights: the optimizer's variables of each weight (those of
# Keras; those of Mesh TensorFlow, `q_slot_v`, `q_slot_vr` and so on; those of google-research/bert,
# `kernel/adam_m`), the step, and the tree of the checkpoint's objects.
_NO_WEIGHT = re.compile(
    r".*/\.OPTIMIZER_SLOT/.*|.*_slot_\w+|.*/adam_[mv]|global_step|_CHECKPOINTABLE_OBJECT_GRAPH"
)
_GIVE_IT = "Give the checkpoint itself: its path up to .index."


class TensorFlowSource(WeightSource):
    """The tensors of a TensorFlow checkpoint: `model.ckpt-N.index` and its data files.

    Names are those of TensorFlow 1, or paths below the object that was saved, such as
    `model/encoder/kernel`; optimizers are left out.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Imported here, because families import this module, and models train without TensorFlow.
        import tensorflow as tf

        self.where = prefix = tensorflow_prefix(path) or os.fspath(path)
        if Path(prefix).is_dir():
            raise FileNotFoundError(f"{prefix}: expected one TensorFlow checkpoint. {_GIVE_IT}")
        with _damage_reported(f"{prefix}: expected a TensorFlow checkpoint"):
            self._reader = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
            dtypes = self._reader.get_variable_to_dtype_map()
        names = [name for name in shapes if not _NO_WEIGHT.fullmatch(name)]
        self._stored = {name.removesuffix(_VALUE): name for name in names}
        self._shapes = {name: tuple(shapes[stored]) for name, stored in self._stored.items()}
        # An index alone could state shapes of any size.
        least = sum(math.prod(shapes[name]) * dtypes[name].size for name in names)
        files = Path(prefix).parent.glob(f"{glob.escape(Path(prefix).name)}.data-*")
        if (size := sum(file.stat().st_size for file in files)) < least:
            raise ValueError(f"{prefix}: expected {least:,} bytes of data, found {size:,}.")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return dict(self._shapes)

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
        raise ValueError(f"{expected} ({error!s:.200}). {_AGAIN}") from error


def tensorflow_prefix(path: str | os.PathLike[str]) -> str | None:
    """The prefix of the TensorFlow checkpoint in a prefix, an index or a folder; None: no such.

    In a folder it is the newest checkpoint that the file `checkpoint` names, or the only one.
    """
    path = Path(path)
    if not path.is_dir():
        prefix = os.fspath(path).removesuffix(_INDEX)
        return prefix if Path(prefix + _INDEX).is_file() else None
    state = path / "checkpoint"
    if not state.is_file():
        indices = [*path.glob(f"*{_INDEX}")]
        return os.fspath(indices[0]).removesuffix(_INDEX) if len(indices) == 1 else None
    # Checks the size, because TensorFlow reads the file as a whole.
    read_bounded(state, limit=2**20, remedy=_GIVE_IT)
    import tensorflow as tf

    newest = tf.train.latest_checkpoint(os.fspath(path))
    if newest is not None and Path(newest).resolve().parent != path.resolve():
        raise ValueError(f"{state}: expected checkpoints in this folder, not {newest}. {_GIVE_IT}")
    return newest
