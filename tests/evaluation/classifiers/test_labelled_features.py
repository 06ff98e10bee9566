from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.classifiers import LabelledFeatures


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
