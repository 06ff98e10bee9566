from __future__ import annotations

import numpy as np

from use_st5.layers.pooling import first_token, masked_max, masked_mean, masked_scaled_sum


def test_padding_cannot_leak_even_as_nan() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 6.0], [np.nan, np.inf]], [[1.0, 1.0]] * 3], np.float32)
    mask = np.array([[True, True, False], [False, False, False]])
    np.testing.assert_allclose(masked_mean(x, mask), [[2.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(masked_max(x, mask), [[3.0, 6.0], [0.0, 0.0]])
    np.testing.assert_allclose(masked_max(-x, mask), [[-1.0, -2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(first_token(x), [[1.0, 2.0], [1.0, 1.0]])


def test_scaled_sum_by_hand() -> None:
    """Two tokens and four: (1 + 3) / √2, and 4 · 2 / √4."""
    x = np.array([[[1.0], [3.0], [np.nan], [9.0]], [[2.0], [2.0], [2.0], [2.0]]], np.float32)
    mask = np.array([[True, True, False, False], [True] * 4])
    pooled = np.asarray(masked_scaled_sum(x, mask))
    np.testing.assert_allclose(pooled, [[4 / 2**0.5], [4.0]], rtol=1e-6)
    none = np.asarray(masked_scaled_sum(x, np.zeros_like(mask)))
    assert none.tolist() == [[0.0], [0.0]]
