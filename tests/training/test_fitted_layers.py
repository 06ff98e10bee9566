"""Layers that name classes, fitted to vectors."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.training.fitted_layers import fit_layers

WIDTH, CLASSES = 8, 3


def drawn(activation: str | None = None) -> keras.layers.Dense:
    """A layer that names classes, always with the same weights."""
    layer = keras.layers.Dense(
        CLASSES, activation, kernel_initializer=keras.initializers.GlorotUniform(seed=1)
    )
    layer.build((None, WIDTH))
    return layer


def rows(count: int, *, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Vectors around a direction for each class, and the classes."""
    random = np.random.default_rng(0)
    labels = random.integers(CLASSES, size=count)
    vectors = np.eye(WIDTH)[labels] + noise * random.normal(size=(count, WIDTH))
    return vectors.astype(np.float32), labels


def entropy(layer: keras.layers.Dense, vectors: np.ndarray, labels: np.ndarray) -> float:
    found = keras.losses.sparse_categorical_crossentropy(labels, layer(vectors), from_logits=True)
    return float(np.mean(found))


@pytest.mark.parametrize("count", [30, 600])
def test_what_can_be_told_apart_is(count: int) -> None:
    layer = drawn()
    vectors, labels = rows(count, noise=0.05)
    fit_layers([layer], vectors, labels)
    assert (np.asarray(layer(vectors)).argmax(axis=1) == labels).all()


def test_what_cannot_be_told_is_left_open() -> None:
    """Of noise nothing is learnt that would make the layers sure of what they do not know."""
    vectors, labels = rows(600, noise=0.0)
    vectors = np.random.default_rng(1).normal(size=vectors.shape).astype(np.float32)
    layer = drawn()
    begun = entropy(layer, vectors, labels)
    fit_layers([layer], vectors, labels)
    assert begun > 1.1 * np.log(CLASSES)
    assert entropy(layer, vectors, labels) == pytest.approx(np.log(CLASSES), rel=0.05)


def test_probabilities_are_fitted_as_logits_are() -> None:
    vectors, labels = rows(40, noise=0.3)
    logits, probabilities = drawn(), drawn("softmax")
    fit_layers([logits], vectors, labels)
    fit_layers([probabilities], vectors, labels, from_logits=False)
    np.testing.assert_allclose(
        keras.ops.softmax(logits(vectors)), probabilities(vectors), atol=1e-4
    )
