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


def test_a_product_depends_on_the_distance_alone() -> None:
    rng = np.random.default_rng(1)
    one, two = (np.tile(rng.normal(size=(1, 1, 1, 8)), (1, 1, 50, 1)) for _ in range(2))
    angles = rotary_angles(50, 8, 10_000.0)
    products = np.asarray(rotated(one, angles))[0, 0] @ np.asarray(rotated(two, angles))[0, 0].T
    for distance in (0, 3, 20):
        along = np.diagonal(products, distance)
        np.testing.assert_allclose(along, along[0], atol=1e-4)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(
        ValueError, match="expected an even number for rotary positions, received 5"
    ):
        rotary_angles(3, 5, 100.0)
