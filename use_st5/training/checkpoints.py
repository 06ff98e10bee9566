"""Checkpoints of a training run on disk."""

from __future__ import annotations

import abc
import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import keras

from use_st5._files import atomic_path
from use_st5._records import read_record

State = TypeVar("State")

_STATE = "state.json"
# Of a run that measured a hundred thousand times.
_LIMIT = 2**26
_NAME = re.compile(r"checkpoint-(\d{9})")
# `atomic_path` writes beside its target under a hidden name, and a removal begins with one: what
# a killed run leaves behind.
_LEFTOVER = re.compile(r"\.checkpoint-\d{9}\.[0-9a-f]+")


class Checkpoints(abc.ABC):
    """A folder of numbered checkpoints, each complete or not there at all.

    `checkpoint-STEP/` holds the variables, in the subclass's format, and `state.json`. It is
    written under another name and renamed when whole.

    Args:
        folder: Where the checkpoints are.
        variables: The variables by group; restored by position in their list.
        keep: How many of the newest to keep, at least 1.

    Raises:
        ValueError: `keep` is below 1.
    """

    # The file of a checkpoint's folder that only the subclass's format has.
    _values_file: ClassVar[str]

    def __init__(
        self,
        folder: str | os.PathLike[str],
        variables: dict[str, Sequence[keras.Variable]],
        *,
        keep: int = 2,
    ) -> None:
        if keep < 1:
            raise ValueError(f"Expected to keep at least one checkpoint. Received: {keep}")
        self.folder = Path(folder)
        self.keep = keep
        self._variables = {name: list(group) for name, group in variables.items()}

    def steps(self) -> list[int]:
        """The steps of the checkpoints that exist, ascending."""
        if not self.folder.is_dir():
            return []
        matches = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def save(self, step: int, state: dict[str, Any], *, also_keep: int | None = None) -> None:
        """Writes the checkpoint of `step` and removes those that are no longer kept.

        Args:
            step: Its number.
            state: JSON values to keep beside the variables.
            also_keep: A step to keep beside the newest ones (the best).
        """
        with atomic_path(self._path(step)) as temporary:
            temporary.mkdir()
            self._write(temporary)
            text = json.dumps(state, indent=1, ensure_ascii=False)
            (temporary / _STATE).write_text(text, encoding="utf-8")
        self._remove_old(also_keep)

    def state(self, step: int, kind: type[State]) -> State:
        """The JSON values of the checkpoint of `step`, NaN among them, as a type.

        Raises:
            FileNotFoundError: There are none.
            ValueError: They are damaged.
        """
        remedy = f"Remove {self._path(step)}: the run goes on from the checkpoint before it."
        path = self._path(step) / _STATE
        return read_record(path, kind, remedy=remedy, limit=_LIMIT, not_finite=True)

    def restore(self, step: int, groups: Sequence[str] | None = None) -> None:
        """Reads the variables of the checkpoint of `step`.

        Args:
            step: Its number.
            groups: The groups to read; None for all.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            ValueError: It is damaged or in another format, or its variables are others.
        """
        if step not in self.steps():
            raise FileNotFoundError(
                f"Expected the checkpoint of step {step} in {self.folder}. "
                f"Found checkpoints of steps: {self.steps()}"
            )
        folder = self._path(step)
        if not (folder / self._values_file).exists():
            raise ValueError(
                f"{folder}: expected {self._values_file}, found "
                f"{sorted(path.name for path in folder.iterdir())}. A run goes on under the "
                "backend of Keras that it began with (KERAS_BACKEND)."
            )
        names = self._variables if groups is None else groups
        try:
            self._read(folder, {name: self._variables[name] for name in names})
        except Exception as error:  # the formats' own kinds, which differ between versions
            raise ValueError(
                f"{folder}: expected the variables of this run, found others, or files that are "
                f"damaged ({type(error).__name__}: {error}). Remove it: the run goes on from the "
                "checkpoint before it."
            ) from error

    @abc.abstractmethod
    def _write(self, folder: Path) -> None:
        """Writes all variables into a new checkpoint's folder."""

    @abc.abstractmethod
    def _read(self, folder: Path, variables: dict[str, list[keras.Variable]]) -> None:
        """Gives variables, by group, the values of a checkpoint's folder."""

    def _path(self, step: int) -> Path:
        return self.folder / f"checkpoint-{step:09d}"

    def _remove_old(self, also_keep: int | None) -> None:
        for step in self.steps()[: -self.keep]:
            if step != also_keep:
                # A removal that is killed in the middle must not look like a checkpoint.
                path = self._path(step)
                path.rename(path.with_name(f".{path.name}.{secrets.token_hex(6)}"))
        for path in self.folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                shutil.rmtree(path)
