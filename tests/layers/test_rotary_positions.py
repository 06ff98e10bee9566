"""Rotary positions by complex numbers, and their property."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.layers.rotary_positions import rotary_angles, rotated


def test_pairs_turn_like_complex_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype(np.float32)
    turned = np.asarray(rotated(x, rotary_angles(5, 6, 100.0)))
    rates = 100.0 ** (-np.arange(3) / 3)
    expected = (x[..., :3] + 1j * x[..., 3:]) * np.exp(1j * np.arange(5)[:, None] * rates)
    np.testing.assert_allclose(turned[..., :3], expected.real, atol=1e-5)
    np.testing.assert_allclose(turned[..., 3:], expected.imag, atol=1e-5)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(
        ValueError, match="expected an even number for rotary positions, received 5"
    ):
        rotary_angles(3, 5, 100.0)
