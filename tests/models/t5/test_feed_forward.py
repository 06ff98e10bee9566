from __future__ import annotations

import math

import numpy as np
import pytest

from use_st5.models.t5.feed_forward import T5FeedForward


def test_plain_by_hand() -> None:
    layer = T5FeedForward(5)
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("f")
    layer.build((None, 3))
    inner = np.maximum(0, x @ np.asarray(layer.inner.kernel))
    np.testing.assert_allclose(layer(x), inner @ np.asarray(layer.outer.kernel), atol=1e-5)
    assert len(layer.weights) == 2


def test_the_first_of_the_gated_pair_is_activated_by_the_tanh_gelu() -> None:
    layer = T5FeedForward(1, activation="gated_gelu")
    layer.build((None, 1))
    layer.inner.kernel.assign([[2.0]])
    layer.linear.kernel.assign([[3.0]])
    layer.outer.kernel.assign([[1.0]])
    x = 2.0
    gelu = 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    # The exact gelu would differ in the fourth digit.
    np.testing.assert_allclose(layer(np.ones((1, 1), "f")), [[gelu * 3.0]], atol=1e-5)


def test_unknown_activations_are_refused() -> None:
    with pytest.raises(ValueError, match="Unknown activation: 'gelu'"):
        T5FeedForward(4, activation="gelu")
