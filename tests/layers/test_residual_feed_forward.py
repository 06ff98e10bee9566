"""Residual blocks of two bias-free dense layers."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.layers.residual_feed_forward import ResidualFeedForward


def test_blocks_by_hand() -> None:
    layer = ResidualFeedForward((3, 3, 4, 5))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("f")
    y = layer(x)
    w = [dense.kernel.numpy() for dense in layer.dense_layers]
    h = np.tanh(np.tanh(x @ w[0]) @ w[1]) + x
    expected = np.tanh(np.tanh(h @ w[2]) @ w[3]) + h @ layer.projections["1"].kernel.numpy()
    np.testing.assert_allclose(y, expected, atol=1e-5)
    assert len(layer.weights) == 5


@pytest.mark.parametrize("hidden_dims", [(), (4,), (4, 4, 4)])
def test_odd_numbers_of_layers_are_refused(hidden_dims: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="even number of layers"):
        ResidualFeedForward(hidden_dims)
