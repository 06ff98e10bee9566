"""Unit length, and finite at zero."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from use_st5.layers.l2_normalize import L2Normalize


def test_rows_have_length_one() -> None:
    x = np.random.default_rng(0).normal(size=(7, 5)).astype("f")
    normalized = L2Normalize()(x)
    np.testing.assert_allclose(np.linalg.norm(normalized, axis=-1), 1.0, atol=1e-6)
    np.testing.assert_allclose(normalized * np.linalg.norm(x, axis=-1, keepdims=True), x, atol=1e-5)


def test_zero_stays_zero_with_a_finite_gradient() -> None:
    x = tf.Variable(np.zeros((1, 3), np.float32))
    with tf.GradientTape() as tape:
        y = L2Normalize()(x)
    assert (y.numpy() == 0).all()
    assert np.isfinite(tape.gradient(y, x)).all()


def test_low_precision_input_gives_float32() -> None:
    assert L2Normalize()(tf.ones((1, 4), tf.bfloat16)).dtype == tf.float32
