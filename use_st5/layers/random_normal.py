"""Random initial weights, which are skipped if a checkpoint replaces them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import keras

_SKIPPED: ContextVar[bool] = ContextVar("_SKIPPED", default=False)


@keras.saving.register_keras_serializable(package="use_st5")
class RandomNormal(keras.initializers.RandomNormal):
    """Keras's `RandomNormal`; inside `without_initial_values` it returns zeros."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Any:
        if _SKIPPED.get():
            return keras.ops.zeros(shape, dtype)
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
