"""Codes of few bits, by cases computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.export.rounding import int4_codes, int8_codes


def test_int8_codes_of_rows_and_columns() -> None:
    weights = np.float32([[0.5, -127.0, 1.4], [0.0, 0.0, 0.0]])
    codes, scales = int8_codes(weights, axis=1)
    assert codes.tolist() == [[0, -127, 1], [0, 0, 0]]
    assert scales.tolist() == [[1.0], [1.0]]
    codes, scales = int8_codes(weights, axis=0)
    assert codes.tolist() == [[127, -127, 127], [0, 0, 0]]
    np.testing.assert_allclose(scales * 127, [[0.5, 127.0, 1.4]], rtol=1e-6)


def test_int4_codes_are_steps_of_the_root_mean_square() -> None:
    # The root mean square of the first row is 2, so that a step is 1.3; 9 of 12 entries are 0.
    row = np.zeros(12, np.float32)
    row[:3] = 4.0, -4.0, 4.0
    codes, scales = int4_codes(np.stack([row, 0 * row]))
    np.testing.assert_allclose(scales, [[1.3], [1.0]], rtol=1e-6)
    assert codes[0].tolist() == [3, -3, 3, *[0] * 9]
    assert not codes[1].any()


def test_int4_codes_have_at_most_seven_steps() -> None:
    row = np.zeros((1, 400), np.float32)
    row[0, :2] = 50.0, -50.0  # 14 root mean squares
    codes, _ = int4_codes(row)
    assert (codes.max(), codes.min()) == (7, -7)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    weights = np.float32([[1.0, 2.0], [value, 0.0]])
    with pytest.raises(ValueError, match=r"NaN or infinity in rows \[1\]"):
        int4_codes(weights)
    with pytest.raises(ValueError, match=r"NaN or infinity in columns \[0\]"):
        int8_codes(weights, axis=0)
