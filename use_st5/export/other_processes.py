"""An encoder in other processes: errors instead of a hang or lost weights."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

# The process in which a model was first loaded; a forked child inherits the number.
_started_in: int | None = None


def refuse_after_fork() -> None:
    """Refuses forked processes; call this before TensorFlow loads or runs a model.

    TensorFlow's threads do not exist in a forked child: the first operation there would wait for
    them without end.
    """
    global _started_in
    if _started_in is None:
        _started_in = os.getpid()
    elif _started_in != os.getpid():
        raise RuntimeError(
            f"Expected a process that is not a fork, found a fork of process {_started_in}, which "
            "had loaded a model. TensorFlow would hang here. Start processes with "
            'multiprocessing.get_context("spawn"), or load models only after the fork.'
        )


def refuse_unsaved_weights(model: Any, folder: Path) -> None:
    """Refuses unsaved weights; call this before a model is described by its folder alone.

    Reads the folder's weights once: a gigabyte takes a second or two.
    """
    variables = getattr(model, "variables", ())
    if not variables:
        return
    import tensorflow as tf

    def digest(array: np.ndarray) -> bytes:
        array = np.asarray(array)
        return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).digest()

    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    stored = {digest(reader.get_tensor(key)) for key in reader.get_variable_to_dtype_map()}
    if any(digest(variable.numpy()) not in stored for variable in variables):
        raise ValueError(
            f"Expected the weights of {folder}, found changed weights in memory. Pickle and copy "
            "store only the folder, so the changes would be lost. Call encoder.save(new_folder), "
            "and pickle use_st5.load(new_folder)."
        )
