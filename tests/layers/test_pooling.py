"""Pooling, and scaling to length 1."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from use_st5.layers.pooling import (
    L2Normalize,
    first_token,
    last_token,
    masked_max,
    masked_mean,
    masked_scaled_sum,
    masked_weighted_mean,
)


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


def test_padding_cannot_leak_even_as_nan() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 6.0], [np.nan, np.inf]], [[1.0, 1.0]] * 3], np.float32)
    mask = np.array([[True, True, False], [False, False, False]])
    np.testing.assert_allclose(masked_mean(x, mask), [[2.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(masked_max(x, mask), [[3.0, 6.0], [0.0, 0.0]])
    np.testing.assert_allclose(masked_max(-x, mask), [[-1.0, -2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(first_token(x), [[1.0, 2.0], [1.0, 1.0]])
    np.testing.assert_array_equal(last_token(x, mask), [[3.0, 6.0], [0.0, 0.0]])
    # 1/3 of the first and 2/3 of the second.
    expected = [[7 / 3, 14 / 3], [0.0, 0.0]]
    np.testing.assert_allclose(masked_weighted_mean(x, mask), expected, rtol=1e-6)


def test_of_equal_numbers_the_first_gets_the_gradient_of_the_largest() -> None:
    x = tf.constant([[[5.0, -1.0], [5.0, 2.0], [9.0, 9.0]], [[1.0, 1.0]] * 3])
    mask = np.array([[True, True, False], [False, False, False]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(masked_max(x, mask) * [[2.0, 3.0]])
    expected = [[[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]], np.zeros((3, 2))]
    np.testing.assert_array_equal(tape.gradient(loss, x), expected)


def test_the_gradient_of_the_largest_is_finite_where_xla_computes_a_layer_twice() -> None:
    """Compiled without optimizations (conftest.py), the gradient of `ops.max` is NaN here."""
    norm = keras.layers.LayerNormalization()
    norm.build((2, 7, 8))
    mask = np.arange(7) < np.array([[7], [4]])

    @tf.function(jit_compile=True)
    def gradient(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(masked_max(norm(tf.tanh(x) * x + tf.exp(-x)), mask))
        return tape.gradient(loss, x)

    assert np.isfinite(gradient(tf.random.stateless_normal((2, 7, 8), [1, 2]))).all()


def test_scaled_sum_by_hand() -> None:
    """Two tokens and four: (1 + 3) / √2, and 4 · 2 / √4."""
    x = np.array([[[1.0], [3.0], [np.nan], [9.0]], [[2.0], [2.0], [2.0], [2.0]]], np.float32)
    mask = np.array([[True, True, False, False], [True] * 4])
    pooled = np.asarray(masked_scaled_sum(x, mask))
    np.testing.assert_allclose(pooled, [[4 / 2**0.5], [4.0]], rtol=1e-6)
    none = np.asarray(masked_scaled_sum(x, np.zeros_like(mask)))
    assert none.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("mode", ["mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_those_of_sentence_transformers(mode: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `peers` is not installed")
    peers = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    mask = np.arange(5) < np.array([[5], [3], [1]])
    given = {"token_embeddings": torch.tensor(x), "attention_mask": torch.tensor(mask).long()}
    expected = peers.Pooling(4, pooling_mode=mode)(given)["sentence_embedding"].numpy()
    ours = {"mean_sqrt_len_tokens": masked_scaled_sum, "weightedmean": masked_weighted_mean}
    np.testing.assert_allclose(ours.get(mode, last_token)(x, mask), expected, atol=1e-6)
