"""Checkpoints as arrays, whatever Keras's backend."""

from __future__ import annotations

import os
from pathlib import Path

import keras
import numpy as np
import safetensors.numpy
from safetensors import safe_open

from use_st5.training.checkpoints import Checkpoints


class ArrayCheckpoints(Checkpoints):
    """`Checkpoints` as safetensors files: the arrays "GROUP/POSITION"."""

    _values_file = "values.safetensors"

    def _write(self, folder: Path) -> None:
        arrays = {
            f"{name}/{position}": np.asarray(variable.numpy(), order="C")
            for name, group in self._variables.items()
            for position, variable in enumerate(group)
        }
        safetensors.numpy.save_file(arrays, os.fspath(folder / self._values_file))

    def _read(self, folder: Path, variables: dict[str, list[keras.Variable]]) -> None:
        path = folder / self._values_file
        wanted = {
            f"{name}/{position}": variable
            for name, group in variables.items()
            for position, variable in enumerate(group)
        }
        with safe_open(path, framework="np") as file:
            if missing := wanted.keys() - set(file.keys()):
                raise ValueError(f"{path}: expected the arrays {sorted(missing)} too.")
            for name, variable in wanted.items():
                variable.assign(file.get_tensor(name))
