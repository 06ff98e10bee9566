"""How a student of Transformer kind begins, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import keras

Model = TypeVar("Model", bound=keras.Model)

# What the blocks add at the start, against the scale of their own initial values.
_BRANCH_SCALE = 0.1


def start_near_average(
    *, around: Iterable[keras.layers.Layer], branches: Iterable[keras.layers.Layer], seed: int
) -> None:
    """Makes a Transformer's vectors, at first, near an average of its table's rows.

    Args:
        around: The dense layers around the blocks; they become orthogonal, so they keep cosines.
        branches: The last dense layers of what the blocks add; it becomes small.
        seed: Of the orthogonal kernels.
    """
    for dense in around:
        dense.kernel.assign(keras.initializers.Orthogonal(seed=seed)(dense.kernel.shape))
    for dense in branches:
        dense.kernel.assign(_BRANCH_SCALE * dense.kernel)


def in_float32(model: Model) -> Model:
    """The same weights, computed with in float32."""
    exact = type(model).from_config({**model.get_config(), "dtype": "float32"})
    exact.build()
    exact.set_weights(model.get_weights())
    return exact
