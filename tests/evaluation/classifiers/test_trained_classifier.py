from __future__ import annotations

import numpy as np

from use_st5.evaluation.classifiers import LabelledFeatures
from use_st5.evaluation.classifiers.trained_classifier import BLOCK, TrainedClassifier


def test_one_layer_by_hand() -> None:
    data = LabelledFeatures(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.zeros(3, int))
    layer = (np.array([[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]]), np.array([0.0, 0.0, 0.5]))
    trained = TrainedClassifier(0.5, (layer,))
    assert trained.predict(data).tolist() == [0, 1, 2]
    assert trained.predict(data, np.array([2, 0])).tolist() == [2, 0]


def test_two_layers_by_hand() -> None:
    # Hidden units: σ(±x); the sum −1.1σ(x) + σ(−x) + 0.2 is above 0 for x < 0.28 alone.
    data = LabelledFeatures(np.array([[-800.0], [0.2], [0.4], [800.0]]), np.zeros(4, int))
    hidden = (np.array([[1.0], [-1.0]]), np.zeros(2))
    outputs = (np.array([[0.0, 0.0], [-1.1, 1.0]]), np.array([0.0, 0.2]))
    with np.errstate(over="raise"):
        found = TrainedClassifier(0.5, (hidden, outputs)).predict(data)
    assert found.tolist() == [1, 1, 0, 0]


def test_blocks_join() -> None:
    rows = 2 * BLOCK + 3
    signs = np.where(np.arange(rows) % 5, 1.0, -1.0)
    data = LabelledFeatures(signs[:, None], np.zeros(rows, int))
    trained = TrainedClassifier(0.5, ((np.array([[-1.0], [1.0]]), np.zeros(2)),))
    assert np.array_equal(trained.predict(data), signs > 0)
