"""The weights that a training leaves as they are, such as the base under adapters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import keras
import numpy as np


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


def fingerprint(variables: Iterable[keras.Variable]) -> str:
    """SHA-256 of the variables' values, one after the other: a second for a gigabyte or two."""
    digest = hashlib.sha256()
    for variable in variables:
        digest.update(np.ascontiguousarray(variable.numpy()).view(np.uint8))
    return digest.hexdigest()
