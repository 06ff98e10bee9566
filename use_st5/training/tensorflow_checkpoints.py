"""Checkpoints in TensorFlow's format."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from use_st5.training.checkpoints import Checkpoints

_VALUES = "values"


class TensorFlowCheckpoints(Checkpoints):
    """`Checkpoints` as TensorFlow checkpoints of plain lists, for the variables of a strategy.

    Args:
        folder: As in `Checkpoints`.
        variables: As in `Checkpoints`.
        keep: As in `Checkpoints`.
        writes: Whether this process is the one whose checkpoint stays. Under a multi-worker
            strategy all must call `save`, because reading the variables may be a joint operation.
    """

    _values_file = f"{_VALUES}.index"

    def __init__(
        self,
        folder: str | os.PathLike[str],
        variables: dict[str, Sequence[keras.Variable]],
        *,
        keep: int = 2,
        writes: bool = True,
    ) -> None:
        super().__init__(folder, variables, keep=keep)
        self.writes = writes

    def save(self, step: int, state: dict[str, Any], *, also_keep: int | None = None) -> None:
        """As in `Checkpoints`; without `writes` nothing stays."""
        if self.writes:
            super().save(step, state, also_keep=also_keep)
            return
        with tempfile.TemporaryDirectory() as scratch:
            self._write(Path(scratch))

    def _write(self, folder: Path) -> None:
        _checkpoint(self._variables).write(str(folder / _VALUES))

    def _read(self, folder: Path, variables: dict[str, list[keras.Variable]]) -> None:
        status = _checkpoint(variables).read(str(folder / _VALUES))
        status.assert_existing_objects_matched().expect_partial()


def _checkpoint(variables: Mapping[str, Sequence[keras.Variable]]) -> tf.train.Checkpoint:
    values = {name: [variable.value for variable in group] for name, group in variables.items()}
    return tf.train.Checkpoint(**values)
