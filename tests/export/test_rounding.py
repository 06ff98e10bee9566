"""Codes of few bits, by cases computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.export.rounding import codes_by_frequency, int8_codes


def test_codes_by_frequency_have_finer_steps_for_frequent_rows() -> None:
    # Each row, and so the median row, has the root mean square 2: at rank 4,950 a step is 0.35
    # times 2. At rank 575 it is half as large, since 575 + 50 is an eighth of 5,000.
    row = np.zeros(12, np.float32)
    row[:3] = 4.0, -4.0, 4.0
    codes, scales = codes_by_frequency(np.stack([row, row]), np.array([4950, 575]))
    np.testing.assert_allclose(scales, [[0.7], [0.35]], rtol=1e-6)
    assert codes[:, :4].tolist() == [[6, -6, 6, 0], [11, -11, 11, 0]]


def test_codes_by_frequency_of_larger_rows_have_larger_steps() -> None:
    table = np.float32([[1.0, -1.0], [2.0, -2.0], [4.0, 4.0], [0.0, 0.0]])
    codes, scales = codes_by_frequency(table, np.full(4, 4950))
    # The median of the sizes is 1.5. A step grows with the root of size times median.
    np.testing.assert_allclose(scales[2] / scales[0], 2.0, rtol=1e-6)
    np.testing.assert_allclose(scales[1, 0], 0.35 * 3**0.5, rtol=1e-6)
    assert (scales[3, 0], codes[3].any()) == (1.0, False)


def test_codes_by_frequency_end_at_127() -> None:
    table = np.ones((3, 400), np.float32)
    table[0, :2] = 500.0, -500.0
    codes, scales = codes_by_frequency(table, np.zeros(3, int))
    assert (codes.max(), codes.min()) == (127, -127)
    assert np.abs(codes * scales - table).max() <= scales.max() / 2 + 1e-6


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    weights = np.float32([[1.0, 2.0], [value, 0.0]])
    with pytest.raises(ValueError, match=r"NaN or infinity in rows \[1\]"):
        codes_by_frequency(weights, np.arange(2))
    with pytest.raises(ValueError, match=r"NaN or infinity in columns \[0\]"):
        int8_codes(weights, axis=0)
