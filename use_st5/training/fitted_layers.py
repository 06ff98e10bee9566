"""Layers that name classes, fitted to vectors which stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

# One row in ten says when it is enough, which is when four rounds of a hundred steps brought
# nothing. Of few rows a tenth says little and is missed: they have four rounds, all of them.
_FEW, _HELD_OUT = 500, 0.1
_STEPS, _ROUNDS, _ROUNDS_OF_FEW, _PATIENCE = 100, 40, 4, 4
_BATCH, _RATE = 16, 1e-2


def fit_layers(
    layers: Sequence[keras.layers.Layer],
    features: np.ndarray,
    labels: np.ndarray,
    *,
    from_logits: bool = True,
) -> None:
    """Fits layers until what they were not shown is named no better; to few rows, 400 steps long.

    Args:
        layers: What reads the features, one after the other.
        features: float `[rows, width]`.
        labels: int `[rows]`.
        from_logits: Whether the last layer gives logits, and not probabilities.
    """
    order = np.random.default_rng(0).permutation(len(labels))
    held = round(_HELD_OUT * len(labels)) if len(labels) >= _FEW else 0
    shown = tf.data.Dataset.from_tensor_slices((features[order[held:]], labels[order[held:]]))
    outputs: Any = (inputs := keras.Input(features.shape[1:]))
    for layer in layers:
        outputs = layer(outputs)
    classifier = keras.Model(inputs, outputs)
    classifier.compile(
        keras.optimizers.Adam(_RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits),
        # Of steps this small the calls take most of the time, and XLA's compilation the rest.
        steps_per_execution=_STEPS,
        jit_compile=False,
    )
    enough = keras.callbacks.EarlyStopping(patience=_PATIENCE, restore_best_weights=True)
    classifier.fit(
        shown.shuffle(len(labels), seed=0).repeat().batch(_BATCH),
        steps_per_epoch=_STEPS,
        epochs=_ROUNDS if held else _ROUNDS_OF_FEW,
        validation_data=(features[order[:held]], labels[order[:held]]) if held else None,
        callbacks=[enough] if held else [],
        shuffle=False,  # The data is.
        verbose=0,
    )
