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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import keras
import numpy as np
import safetensors.numpy
from keras import ops
from safetensors import safe_open

from use_st5.io.files import atomic_path
from use_st5.io.records import read_record
from use_st5.io.remote_files import as_written, exists, names_in, open_local, remote_path, remove

if TYPE_CHECKING:
    from use_st5.training.history import History
    from use_st5.training.task import Task

State = TypeVar("State")

_STATE = "state.json"
_VALUES = "values.safetensors"
# Largest size of `state.json` in bytes: that of a run with a hundred thousand evaluations.
_LIMIT = 2**26
# The end of an error message: what happens if a damaged checkpoint is removed.
_WITHOUT = "the run continues from an earlier one in the folder, or starts again if there is none."
_NAME = re.compile(r"checkpoint-(\d{9})")
# Hidden names of what a killed run leaves behind: `atomic_path` writes next to its target under
# such a name, and a removal first renames to one.
_LEFTOVER = re.compile(r"\.checkpoint-\d{9}\.use_st5-[0-9a-f]+")


class Checkpoints:
    """A folder of numbered checkpoints, each complete or not there at all.

    `checkpoint-STEP/` holds the variables in `values.safetensors`, as the arrays
    "GROUP/POSITION", and `state.json`. It is written under another name and renamed when complete.
    All backends of Keras write and read the same format: a run may begin under one and continue
    under another.

    Args:
        folder: The folder of the checkpoints; it may be remote (gs:// and the like). A remote
            checkpoint is complete when its `state.json` exists.
        variables: The variables by group; restored by position in their list.
        writes: Whether this process writes the checkpoints. Under a multi-worker strategy all
            processes must call `save`, because reading the variables may be a joint operation.
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
        if self._remote:  # Its `state.json` is written last.
            matches = [m for m in matches if exists(f"{self._remote}/{m[0]}/{_STATE}")]
        return sorted(int(match[1]) for match in matches)

    def save(self, step: int, state: dict[str, Any], *, also_keep: int | None = None) -> None:
        """Writes a checkpoint with JSON values; removes others except `also_keep` (the best)."""
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
        """The JSON values of the checkpoint of `step`, as an object of `kind`; NaN is allowed.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            ValueError: The values are damaged.
        """
        path = self._path(step)
        remedy = f"Remove {as_written(path)}: {_WITHOUT}"
        return read_record(path / _STATE, kind, remedy=remedy, limit=_LIMIT, not_finite=True)

    def check_counts(self, step: int, run: History, tasks: Collection[str]) -> None:
        """Refuses a checkpoint whose state does not have the steps of its name, by task."""
        counts = run.task_steps
        if {step} != {run.step, sum(counts.values())} or counts.keys() != {*tasks}:
            path = as_written(self._path(step))
            received = f"step {run.step} and {counts}"
            raise ValueError(
                f"{path}/{_STATE}: expected step {step}, the sum of the steps of the tasks "
                f"{', '.join(tasks)}, received {received:.200}. Remove {path}: {_WITHOUT}"
            )

    def restore(self, step: int, groups: Sequence[str] | None = None) -> None:
        """Reads the variables of the checkpoint of `step`.

        Args:
            step: The step of the checkpoint.
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
        variables = self._named({name: self._variables[name] for name in names})
        with open_local(path) as folder:
            try:
                _assign(folder / _VALUES, variables)
            except FloatingPointError as error:
                raise ValueError(
                    f"{as_written(path / _VALUES)}: expected finite numbers, {error} holds NaN or "
                    f"infinity. Remove {as_written(path)}: {_WITHOUT}"
                ) from error
            except Exception as error:  # Keras's and safetensors' types differ by version.
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
        old_paths = [self._path(step) for step in self.steps()[:-1] if step != also_keep]
        if self._remote:
            for path in old_paths:
                remove(f"{self._remote}/{path.name}")
            return
        for path in old_paths:
            # A removal that is killed in the middle must not look like a checkpoint.
            path.rename(path.with_name(f".{path.name}.use_st5-{secrets.token_hex(6)}"))
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
    """The weights of a layer and its sublayers that were made trainable but are frozen now.

    Weights that were made not trainable, such as the statistics of a batch normalization, and the
    states of seeds are not among them, because they change in training.
    """
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
