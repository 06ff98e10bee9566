from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.classifiers import LabelledFeatures
from use_st5.evaluation.classifiers.classifier import BLOCK, TrainedClassifier


class Squares:
    """Features that are computed when asked for."""

    shape = (5, 2)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([rows, rows**2], axis=1)


def test_rows_are_read_as_float32() -> None:
    array = np.arange(10, dtype=np.float64).reshape(5, 2)
    rows = np.array([3, 0, 3])
    read = LabelledFeatures(array, np.zeros(5, int)).read(rows)
    assert read.dtype == np.float32
    assert read.tolist() == [[6, 7], [0, 1], [6, 7]]
    computed = LabelledFeatures(Squares(), np.zeros(5, int)).read(rows)
    assert computed.dtype == np.float32
    assert computed.tolist() == [[3, 9], [0, 0], [3, 9]]


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.zeros((3, 2)), [0, 1], r"\(3, 2\) and \(2,\)"),
        (np.zeros(3), [0, 1, 0], r"\(3,\) and \(3,\)"),
        (np.zeros((0, 2)), [], "shapes"),
        (np.zeros((2, 2)), [0.0, 1.0], "integers from 0"),
        (np.zeros((2, 2)), [-1, 1], "integers from 0"),
        (np.array([[0.0], [np.nan]]), [0, 1], "NaN"),
    ],
)
def test_what_does_not_fit_is_refused(features: np.ndarray, labels: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LabelledFeatures(features, np.array(labels))


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
