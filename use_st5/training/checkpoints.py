"""Checkpoints of a training run on disk."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import keras
import numpy as np
import safetensors.numpy
from keras import ops
from safetensors import safe_open

from use_st5._files import atomic_path
from use_st5._records import read_record
from use_st5._remote_files import as_written, exists, names_in, open_local, remote_path, remove

if TYPE_CHECKING:
    from use_st5.training.task import Task

State = TypeVar("State")

_STATE = "state.json"
_VALUES = "values.safetensors"
# Of a run that measured a hundred thousand times.
_LIMIT = 2**26
# What comes of the removal of a damaged checkpoint.
_WITHOUT = "the run continues from an earlier one in the folder, or starts again if there is none."
_NAME = re.compile(r"checkpoint-(\d{9})")
# `atomic_path` writes beside its target under a hidden name, and a removal begins with one: what
# a killed run leaves behind.
_LEFTOVER = re.compile(r"\.checkpoint-\d{9}\.[0-9a-f]+")


class Checkpoints:
    """A folder of numbered checkpoints, each complete or not there at all.

    `checkpoint-STEP/` holds the variables in `values.safetensors`, as the arrays
    "GROUP/POSITION", and `state.json`. It is written under another name and renamed when whole.
    Every backend of Keras writes and reads the same: a run may begin under one and go on under
    another.

    Args:
        folder: Where the checkpoints are; it may be remote (gs:// and the like). A remote
            checkpoint is complete when its `state.json` exists.
        variables: The variables by group; restored by position in their list.
        writes: Whether this process is the one whose checkpoint stays. Under a multi-worker
            strategy all must call `save`, because reading the variables may be a joint operation.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        variables: Mapping[str, Sequence[keras.Variable]],
        *,
        writes: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self._remote = remote_path(folder)
        self.writes = writes
        self._variables = {name: list(group) for name, group in variables.items()}

    def steps(self) -> list[int]:
        """The steps of the checkpoints that exist, ascending."""
        matches = [match for name in names_in(self.folder) if (match := _NAME.fullmatch(name))]
        if self._remote:  # Where what describes a checkpoint comes last.
            matches = [m for m in matches if exists(f"{self._remote}/{m[0]}/{_STATE}")]
        return sorted(int(match[1]) for match in matches)

    def save(self, step: int, state: dict[str, Any], *, also_keep: int | None = None) -> None:
        """Writes a checkpoint with JSON values; of the others only `also_keep` (the best) stays."""
        arrays = {name: _array(each) for name, each in self._named(self._variables).items()}
        if not self.writes:
            return
        with atomic_path(self._path(step)) as temporary:
            temporary.mkdir()
            safetensors.numpy.save_file(arrays, os.fspath(temporary / _VALUES))
            text = json.dumps(state, indent=1, ensure_ascii=False)
            (temporary / _STATE).write_text(text, encoding="utf-8")
        self._remove_old(also_keep)

    def state(self, step: int, kind: type[State]) -> State:
        """The JSON values of the checkpoint of `step`, NaN among them, as a type.

        Raises:
            FileNotFoundError: There are none.
            ValueError: They are damaged.
        """
        path = self._path(step)
        remedy = f"Remove {as_written(path)}: {_WITHOUT}"
        return read_record(path / _STATE, kind, remedy=remedy, limit=_LIMIT, not_finite=True)

    def restore(self, step: int, groups: Sequence[str] | None = None) -> None:
        """Reads the variables of the checkpoint of `step`.

        Args:
            step: Its number.
            groups: The groups to read; None for all.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            ValueError: It is damaged, has other variables, or holds NaN or infinity.
        """
        if step not in self.steps():
            raise FileNotFoundError(
                f"Expected the checkpoint of step {step} in {as_written(self.folder)}. "
                f"Found checkpoints of steps: {self.steps()}"
            )
        path = self._path(step)
        names = self._variables if groups is None else groups
        wanted = self._named({name: self._variables[name] for name in names})
        with open_local(path) as folder:
            try:
                _assign(folder / _VALUES, wanted)
            except FloatingPointError as error:
                raise ValueError(
                    f"{as_written(path / _VALUES)}: expected finite numbers, {error} holds NaN or "
                    f"infinity. Remove {as_written(path)}: {_WITHOUT}"
                ) from error
            except Exception as error:  # Keras's kinds and the format's, which differ by version
                raise ValueError(
                    f"{as_written(path)}: expected the variables of this run, found others or "
                    f"damaged files ({type(error).__name__}: {error}). Remove it: {_WITHOUT}"
                ) from error

    @property
    def variables(self) -> Iterator[keras.Variable]:
        """All variables that a checkpoint holds."""
        return itertools.chain.from_iterable(self._variables.values())

    @staticmethod
    def _named(groups: dict[str, list[keras.Variable]]) -> dict[str, keras.Variable]:
        """The variables by the names of their arrays."""
        # By position: Keras numbers names by process, and by backend.
        return {
            f"{name}/{position}": variable
            for name, group in groups.items()
            for position, variable in enumerate(group)
        }

    def _path(self, step: int) -> Path:
        return self.folder / f"checkpoint-{step:09d}"

    def _remove_old(self, also_keep: int | None) -> None:
        old = [self._path(step) for step in self.steps()[:-1] if step != also_keep]
        if self._remote:
            for path in old:
                remove(f"{self._remote}/{path.name}")
            return
        for path in old:
            # A removal that is killed in the middle must not look like a checkpoint.
            path.rename(path.with_name(f".{path.name}.{secrets.token_hex(6)}"))
        for path in self.folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                shutil.rmtree(path)


def _assign(values: Path, variables: Mapping[str, keras.Variable]) -> None:
    with safe_open(values, framework="np") as file:
        if missing := variables.keys() - set(file.keys()):
            raise ValueError(f"no {', '.join(sorted(missing))}")
        for name, variable in variables.items():
            array = file.get_tensor(name)
            if not np.isfinite(array).all():
                raise FloatingPointError(f"{name} ({variable.path})")
            variable.assign(array)


def frozen_weights(layer: keras.layers.Layer) -> list[keras.Variable]:
    """The weights of a layer, and of those inside, that were made to be trained and are not.

    What a layer made not trainable, such as the statistics of a batch normalization, and the
    states of seeds do change in training.
    """
    # Keras keeps the two kinds apart whatever is frozen later, and says so nowhere in public.
    to_train = {
        id(variable)
        for each in layer._flatten_layers(include_self=True, recursive=True)
        for variable in each._trainable_variables
    }
    return [v for v in layer.weights if id(v) in to_train and not v.trainable]


def changing_variables(layer: keras.layers.Layer) -> list[keras.Variable]:
    """All variables of a layer but those that are frozen, in their order."""
    frozen = {id(variable) for variable in frozen_weights(layer)}
    return [variable for variable in layer.variables if id(variable) not in frozen]


def variables_of_run(
    encoder: keras.Model,
    tasks: Mapping[str, Task],
    optimizer: keras.optimizers.Optimizer,
) -> dict[str, list[keras.Variable]]:
    """The variables in a checkpoint of a run, by group."""
    heads = {f"head_{name}": task.loss for name, task in tasks.items()}
    layers = {**heads, "encoder": encoder}
    groups = {name: changing_variables(layer) for name, layer in layers.items()}
    return {**groups, "optimizer": optimizer.variables}


def fingerprint(variables: Iterable[keras.Variable]) -> str:
    """SHA-256 of the variables' values, one after the other: a second for a gigabyte or two."""
    digest = hashlib.sha256()
    for variable in variables:
        digest.update(_array(variable).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@contextlib.contextmanager
def saving_quietly() -> Iterator[None]:
    """Saves a Keras model within the block: NumPy 2 warns of each variable that Keras gives it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning, "keras")
        yield


def _array(variable: keras.Variable) -> np.ndarray:
    # By a tensor: Keras cannot read a variable of several replicas as an array.
    tensor = ops.convert_to_tensor(variable.value)
    # TensorFlow's own method: NumPy 2 warns of what Keras does with a variable of TensorFlow.
    return np.asarray(tensor.numpy() if hasattr(tensor, "numpy") else tensor, order="C")
