from __future__ import annotations

import math

import numpy as np
import pytest

from use_st5.layers.sinusoidal_positions import sinusoidal_positions


def test_by_hand() -> None:
    signal = np.asarray(sinusoidal_positions(3, 4))
    expected = [[math.sin(p), math.sin(p / 1e4), math.cos(p), math.cos(p / 1e4)] for p in range(3)]
    np.testing.assert_allclose(signal, expected, atol=1e-6)


def test_a_shift_is_a_rotation() -> None:
    """The dot product of two positions depends on their distance alone."""
    signal = np.asarray(sinusoidal_positions(40, 16), np.float64)
    products = signal @ signal.T
    np.testing.assert_allclose(products[5:, 5:], products[:-5, :-5], atol=1e-4)


@pytest.mark.parametrize("dim", [0, 2, 7])
def test_odd_widths_are_refused(dim: int) -> None:
    with pytest.raises(ValueError, match="an even number from 4 on"):
        sinusoidal_positions(3, dim)
