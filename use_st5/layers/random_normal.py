"""Random initial weights, which are skipped if a checkpoint replaces them."""

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

# Bytes. TensorFlow uses an array at an aligned address directly, and copies any other.
_ALIGNMENT = 64


@keras.saving.register_keras_serializable(package="use_st5")
class RandomNormal(keras.initializers.RandomNormal):
    """Keras's `RandomNormal`; inside `without_initial_values` it returns zeros."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Any:
        if _SKIPPED.get():
            return _zeros(shape, np.dtype(keras.backend.standardize_dtype(dtype)))
        return super().__call__(shape, dtype)


@contextlib.contextmanager
def without_initial_values() -> Iterator[None]:
    """Models that this thread builds inside this context start with zeros.

    Use it if a checkpoint replaces the weights: billions of random numbers take minutes, and
    several times the memory of the largest variable.
    """
    token = _SKIPPED.set(True)
    try:
        yield
    finally:
        _SKIPPED.reset(token)


def _zeros(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Zeros that take no memory until they are copied: all of them share one memory page."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)
