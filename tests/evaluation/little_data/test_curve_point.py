from __future__ import annotations

import math

import numpy as np
import pytest

from use_st5.evaluation.little_data.curve_point import CurvePoint


def test_mean_and_sample_deviation() -> None:
    accuracies = (0.5, 0.75, 0.7)
    point = CurvePoint(1000, accuracies)
    assert point.mean == pytest.approx(np.mean(accuracies))
    assert point.deviation == pytest.approx(np.std(accuracies, ddof=1))


def test_one_draw_has_no_deviation() -> None:
    assert CurvePoint(1, (0.5,)).mean == 0.5
    assert math.isnan(CurvePoint(1, (0.5,)).deviation)
