"""Fits classification heads to vectors that do not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from use_st5.encode.similarity import unit_rows
from use_st5.losses.label_loss import LabelLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import TaskLoss
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.rows import TrainingFile, spread, training_table
from use_st5.training.validation import ValidationSet, with_prompts

# Rows that a head is fitted to before the training.
PROBE_ROWS = 2000
# One row in ten is held out: the fit stops after four rounds of a hundred steps without a lower
# loss on these rows. A tenth of few rows says little: a fit to few rows has four rounds.
_FEW, _HELD_OUT = 500, 0.1
_STEPS, _ROUNDS, _ROUNDS_OF_FEW, _PATIENCE = 100, 40, 4, 4
_BATCH, _RATE = 16, 1e-2


def probe_weights(
    make_loss: Callable[[], TaskLoss],
    file: TrainingFile,
    sets: Sequence[ValidationSet],
    encoder: TrainableEncoder,
    seed: int,
) -> list[np.ndarray]:
    """The weights of a loss whose heads are fitted to the vectors of the unchanged encoder.

    Heads with random weights make the encoder forget what it knows of other tasks. This is "linear
    probing then fine-tuning" (Kumar et al. 2022, arXiv 2202.10054, section 3.4);
    docs/own_data_results.md compares both. Only losses with `has_heads` have such weights; `sets`
    are rows that are not trained on.
    """
    rows = [
        with_prompts(row, file.prompts)
        for row in spread(training_table(file, sets), file.kept, PROBE_ROWS)
    ]
    numbers, task = file.label_numbers, file.task
    labels = np.array([numbers[row[task.label or ""]] for row in rows])
    vectors = [encoder.encode([row[key] for row in rows]) for key in task.texts]
    first_loss = make_loss()
    keras.utils.set_random_seed(seed)
    loss = make_loss()
    if loss is first_loss:  # The user made it: it is built later, in the strategy's scope.
        loss = type(first_loss).from_config(first_loss.get_config())
    loss.build((None, encoder.dimension))
    for head, head_vectors in _heads(loss, vectors):
        layers = [*head.hidden_layers, head.output_layer]
        fit_layers(layers, np.asarray(head.head_input(head_vectors)), labels)
    weights: list[np.ndarray] = loss.get_weights()
    return weights


def has_heads(loss: TaskLoss) -> bool:
    """Whether a loss has heads that can be fitted."""
    head_loss = loss.losses_of_heads[0] if isinstance(loss, MatryoshkaLoss) else loss
    return isinstance(head_loss, LabelLoss)


def fit_layers(
    layers: Sequence[keras.layers.Layer],
    features: np.ndarray,
    labels: np.ndarray,
    *,
    from_logits: bool = True,
) -> None:
    """Fits layers with early stopping on held-out rows, or to few rows for 400 steps.

    The features are float `[rows, width]`, the labels int `[rows]`; `from_logits`: the last layer
    gives logits, not probabilities.
    """
    order = np.random.default_rng(0).permutation(len(labels))
    split = round(_HELD_OUT * len(labels)) if len(labels) >= _FEW else 0
    examples = tf.data.Dataset.from_tensor_slices((features[order[split:]], labels[order[split:]]))
    outputs: Any = (inputs := keras.Input(features.shape[1:]))
    for layer in layers:
        outputs = layer(outputs)
    classifier = keras.Model(inputs, outputs)
    classifier.compile(
        keras.optimizers.Adam(_RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits),
        # The steps are so small that calls would take most of the time, and compilation the rest.
        steps_per_execution=_STEPS,
        jit_compile=False,
    )
    early_stopping = keras.callbacks.EarlyStopping(patience=_PATIENCE, restore_best_weights=True)
    classifier.fit(
        examples.shuffle(len(labels), seed=0).repeat().batch(_BATCH),
        steps_per_epoch=_STEPS,
        epochs=_ROUNDS if split else _ROUNDS_OF_FEW,
        validation_data=(features[order[:split]], labels[order[:split]]) if split else None,
        callbacks=[early_stopping] if split else [],
        shuffle=False,  # The data is shuffled already.
        verbose=0,
    )


def _heads(
    loss: TaskLoss, vectors: Sequence[np.ndarray]
) -> Iterator[tuple[LabelLoss, list[np.ndarray]]]:
    """Each classifier of a loss, with the vectors that it will read."""
    if isinstance(loss, LabelLoss):
        yield loss, [*vectors]
    elif isinstance(loss, MatryoshkaLoss):
        for dimension, head in zip(loss.dimensions, loss.losses_of_heads, strict=True):
            yield from _heads(head, [unit_rows(each[:, :dimension]) for each in vectors])
