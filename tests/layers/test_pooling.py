from __future__ import annotations

import numpy as np

from use_st5.layers.pooling import masked_mean


def test_padding_cannot_leak_even_as_nan() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 6.0], [np.nan, np.inf]], [[1.0, 1.0]] * 3], np.float32)
    mask = np.array([[True, True, False], [False, False, False]])
    np.testing.assert_allclose(masked_mean(x, mask), [[2.0, 4.0], [0.0, 0.0]])
