"""Checkpoints of a training run on disk."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import safetensors.numpy
from keras import ops
from safetensors import safe_open

from use_st5.io.files import as_written, atomic_path, names_in, open_local, remote_path, remove
from use_st5.io.records import read_record

_STATE = "state.json"
_VALUES = "values.safetensors"
# Largest size of `state.json` in bytes: that of a run with a hundred thousand evaluations.
_LIMIT = 2**26
# The end of an error message: what happens if a damaged checkpoint is removed.
_WITHOUT = "the run continues from an earlier one in the folder, or starts again if there is none."
# A checkpoint, or the hidden name under which a killed run began to write one.
_NAME = re.compile(r"\.?checkpoint-(\d{9})(\.use_st5-[0-9a-f]+)?")


class Checkpoints:
    """A folder of numbered checkpoints, each complete or not there at all.

    `checkpoint-STEP/` holds the variables in `values.safetensors`, as the arrays
    "GROUP/POSITION", and `state.json`. It is complete when its `state.json` exists, which is
    removed first. All backends of Keras write and read the same format: a run may begin under one
    and continue under another.

    The folder may be remote. Variables are restored by position in the list of their group. Under a
    multi-worker strategy all processes must call `save`, even if only one of them `writes`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        variables: Mapping[str, Sequence[keras.Variable]],
        *,
        writes: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self.writes = writes
        self._variables = {name: list(group) for name, group in variables.items()}

    def steps(self) -> list[int]:
        """The steps of the checkpoints that exist, ascending."""
        numbers = (int(match[1]) for name in names_in(self.folder) if (match := _NAME.match(name)))
        return sorted(step for step in {*numbers} if _STATE in names_in(self._path(step)))

    def save(self, step: int, state: dict[str, Any], *, also_keep: Sequence[int] = ()) -> None:
        """Writes a checkpoint with JSON values; removes others except `also_keep` (the best)."""
        arrays = {name: _array(each) for name, each in self._named([*self._variables]).items()}
        if not self.writes:
            return
        with atomic_path(self._path(step)) as temporary:
            temporary.mkdir()
            safetensors.numpy.save_file(arrays, os.fspath(temporary / _VALUES))
            text = json.dumps(state, indent=1, ensure_ascii=False)
            (temporary / _STATE).write_text(text, encoding="utf-8")
        kept = {self._path(each).name for each in (self.steps()[-1], *also_keep)}
        for name in names_in(self.folder):
            if _NAME.fullmatch(name) and name not in kept:
                path = self.folder / name
                if remote := remote_path(path):
                    remove(remote)
                else:
                    (path / _STATE).unlink(missing_ok=True)
                    shutil.rmtree(path)

    def state(self, step: int) -> dict[str, Any]:
        """The JSON values of the checkpoint of `step`; NaN is allowed."""
        path = self._path(step)
        remedy = f"Remove {as_written(path)}: {_WITHOUT}"
        return read_record(
            path / _STATE, dict[str, Any], remedy=remedy, limit=_LIMIT, not_finite=True
        )

    def restore(self, step: int, groups: Sequence[str] | None = None) -> None:
        """Reads the variables of the checkpoint of `step`, of some groups or of all."""
        path = as_written(self._path(step))
        with open_local(path) as folder:
            try:
                with safe_open(folder / _VALUES, framework="np") as file:
                    for name, variable in self._named(groups or [*self._variables]).items():
                        variable.assign(file.get_tensor(name))
            except Exception as error:  # Keras's and safetensors' types differ by version.
                raise ValueError(
                    f"{path}: expected the variables of this run, found others or damaged files "
                    f"({type(error).__name__}: {error}). Remove it: {_WITHOUT}"
                ) from error

    @property
    def variables(self) -> Iterator[keras.Variable]:
        """All variables that a checkpoint holds."""
        return itertools.chain.from_iterable(self._variables.values())

    def _named(self, groups: Sequence[str]) -> dict[str, keras.Variable]:
        """The variables of some groups by the names of their arrays."""
        # By position: Keras numbers names by process, and by backend.
        return {
            f"{name}/{position}": variable
            for name in groups
            for position, variable in enumerate(self._variables[name])
        }

    def _path(self, step: int) -> Path:
        return self.folder / f"checkpoint-{step:09d}"


def frozen_weights(layer: keras.layers.Layer) -> list[keras.Variable]:
    """The weights that were made trainable but are frozen now, so no statistics and no seeds."""
    # Keras keeps a list of the variables that were made trainable, even if they are frozen later,
    # but it is not public.
    trainable_ids = {
        id(variable)
        for sublayer in layer._flatten_layers(include_self=True, recursive=True)
        for variable in sublayer._trainable_variables
    }
    return [v for v in layer.weights if id(v) in trainable_ids and not v.trainable]


def changing_variables(layer: keras.layers.Layer) -> list[keras.Variable]:
    """All variables of a layer except the frozen ones, in their order."""
    frozen = {id(variable) for variable in frozen_weights(layer)}
    return [variable for variable in layer.variables if id(variable) not in frozen]


def fingerprint(variables: Iterable[keras.Variable]) -> str:
    """SHA-256 of the variables' values in order; takes a second for a gigabyte or two."""
    digest = hashlib.sha256()
    for variable in variables:
        digest.update(_array(variable).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@contextlib.contextmanager
def saving_quietly() -> Iterator[None]:
    """Suppresses NumPy 2's warning of each variable while the block saves a Keras model."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning, "keras")
        yield


def _array(variable: keras.Variable) -> np.ndarray:
    # Through a tensor: Keras cannot read a variable of several replicas as an array.
    tensor = ops.convert_to_tensor(variable.value)
    # TensorFlow's own method: NumPy 2 warns of Keras's way to read a variable of TensorFlow.
    return np.asarray(tensor.numpy() if hasattr(tensor, "numpy") else tensor, order="C")
