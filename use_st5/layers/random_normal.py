"""Initial values that are not drawn where a checkpoint replaces them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import keras

# Registers bfloat16 with NumPy, under the name that Keras uses too.
import ml_dtypes  # noqa: F401
import numpy as np

_SKIPPED: ContextVar[bool] = ContextVar("_SKIPPED", default=False)

# Bytes; TensorFlow takes an array at such an address as it is, another it copies.
_ALIGNMENT = 64


@keras.saving.register_keras_serializable(package="use_st5")
class RandomNormal(keras.initializers.RandomNormal):
    """Keras's `RandomNormal`, which `without_initial_values` turns into zeros.

    Args:
        mean: Of the numbers.
        stddev: Of the numbers.
        seed: As for Keras's.

    Call arguments:
        shape: Of the tensor.
        dtype: Of the tensor.

    Returns:
        The tensor.
    """

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Any:
        if _SKIPPED.get():
            return _zeros(shape, np.dtype(keras.backend.standardize_dtype(dtype)))
        return super().__call__(shape, dtype)


@contextlib.contextmanager
def without_initial_values() -> Iterator[None]:
    """Models built inside begin with zeros, in this thread.

    For models whose weights are read from a checkpoint: drawing billions of numbers takes minutes,
    and several times the memory of the largest variable.
    """
    token = _SKIPPED.set(True)
    try:
        yield
    finally:
        _SKIPPED.reset(token)


def _zeros(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Zeros that take no memory until they are copied: the system has one page for all of them."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
