"""Whether a loaded SavedModel still has the weights of its folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


def refuse_unsaved_weights(model: Any, folder: Path) -> None:
    """Call before a model is described by its folder alone.

    Reads the folder's weights once: a gigabyte takes a second or two.

    Raises:
        ValueError: A weight in memory is none of the folder's.
    """
    variables = getattr(model, "variables", ())
    if not variables:
        return
    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    kept = {_digest(reader.get_tensor(key)) for key in reader.get_variable_to_dtype_map()}
    if any(_digest(variable.numpy()) not in kept for variable in variables):
        raise ValueError(
            f"Expected the weights of {folder}, found others in memory: an encoder is pickled and "
            "copied by its folder, which would lose them. Write them by encoder.save(new_folder) "
            "and pickle use_st5.load(new_folder)."
        )


def _digest(array: Any) -> bytes:
    array = np.asarray(array)
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).digest()
