from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.classifiers._side_by_side import EarlyStopping


def evaluations(series: list[float], tenacity: int) -> int:
    """How many evaluations a training with these dev accuracies has."""
    stopping = EarlyStopping((1,), tenacity)
    for number, accuracy in enumerate(series, start=1):
        stopping.update(np.array([accuracy]))
        if not stopping.running[0]:
            return number
    return len(series)


@pytest.mark.parametrize(
    ("series", "tenacity", "expected"),
    [
        # Misses (equal counts as one) at 2, 4, 5, 7: improvements between do not reset the count.
        ([0.5, 0.4, 0.6, 0.6, 0.5, 0.7, 0.6, 0.8], 3, 7),
        ([0.5, 0.4, 0.6, 0.6, 0.5, 0.7, 0.6, 0.8], 2, 5),
        ([0.5, 0.4, 0.6], 0, 2),
        ([0.0, 0.0, 0.0], 0, 2),  # the first evaluation improves, even at 0
        ([0.1, 0.2, 0.3, 0.4], 0, 4),
    ],
)
def test_the_count_is_never_reset(series: list[float], tenacity: int, expected: int) -> None:
    assert evaluations(series, tenacity) == expected


def test_a_stopped_training_does_not_improve() -> None:
    stopping = EarlyStopping((1, 2), 0)
    assert stopping.update(np.array([[0.5, 0.5]])).tolist() == [[True, True]]
    assert stopping.update(np.array([[0.4, 0.6]])).tolist() == [[False, True]]
    assert stopping.update(np.array([[0.9, 0.7]])).tolist() == [[False, True]]
    assert stopping.best.tolist() == [[0.5, 0.7]]
    assert stopping.running.tolist() == [[False, True]]
