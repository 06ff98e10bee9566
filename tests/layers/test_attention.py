"""Multi-head attention, and the packing of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from keras import ops
from scipy.special import softmax

from use_st5.layers.attention import MultiHeadAttention, Packing


def test_packing_by_hand() -> None:
    tokens = np.array([[True, True, False], [True, False, False]])
    packing = Packing.of(tokens, num_heads=2)
    x = np.arange(12, dtype="f").reshape(2, 3, 2)
    packed = np.asarray(packing.pack(x))
    np.testing.assert_array_equal(packed, [[0, 1], [2, 3], [6, 7]])
    np.testing.assert_array_equal(np.asarray(packing.unpack(packed))[tokens], packed)
    heads = np.asarray(packing.split_heads(packed, width=1))
    assert heads.shape == (2, 2, 3, 1)
    np.testing.assert_array_equal(heads[0, :, :2, 0], [[0, 2], [1, 3]])
    np.testing.assert_array_equal(heads[1, :, 0, 0], [6, 7])


@pytest.mark.parametrize("shape", [(2, 3), (1, 0), (0, 4)])
def test_nothing_but_padding(shape: tuple[int, int]) -> None:
    packing = Packing.of(np.zeros(shape, bool), num_heads=2)
    packed = packing.pack(np.ones((*shape, 4), "f"))
    assert packed.shape[0] == min(1, shape[0] * shape[1])
    if packed.shape[0]:
        assert ops.shape(packing.unpack(packed)) == (*shape, 4)


@pytest.fixture
def layer() -> MultiHeadAttention:
    layer = MultiHeadAttention(2, 3)
    layer.build((None, None, 4))
    return layer


def test_by_hand(layer: MultiHeadAttention) -> None:
    rng = np.random.default_rng(0)
    x, context = rng.normal(size=(2, 3, 4)).astype("f"), rng.normal(size=(2, 5, 4)).astype("f")
    bias = rng.normal(size=(1, 2, 3, 5)).astype("f")
    q, k, v = (np.asarray(dense.kernel) for dense in (layer.query, layer.key, layer.value))
    heads = []
    for head in (slice(0, 3), slice(3, 6)):
        scores = x @ q[:, head] @ (context @ k[:, head]).transpose(0, 2, 1)
        heads.append(softmax(scores + bias[:, head.start // 3], axis=-1) @ (context @ v[:, head]))
    expected = np.concatenate(heads, axis=-1) @ np.asarray(layer.output_dense.kernel)
    np.testing.assert_allclose(layer(x, context, bias=bias), expected, atol=1e-5)


def test_what_is_masked_does_not_matter(layer: MultiHeadAttention) -> None:
    x = np.random.default_rng(0).normal(size=(1, 6, 4)).astype("f")
    visible = np.array([True, True, True, True, False, False])[None, None, None]
    changed = x.copy()
    changed[:, 4:] = 1e6
    before, after = layer(x, visible=visible)[:, :4], layer(changed, visible=visible)[:, :4]
    np.testing.assert_array_equal(before, after)
    np.testing.assert_allclose(before, layer(x[:, :4]), atol=1e-6)


def test_packed_tokens_attend_as_padded_ones(layer: MultiHeadAttention) -> None:
    x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("f")
    tokens = np.arange(5) < np.array([[3], [5], [1]])
    bias = np.where(tokens, 0.0, -1e9).astype("f")[:, None, None]
    packing = Packing.of(tokens, num_heads=2)
    packed = layer(packing.pack(x), bias=bias, packing=packing)
    np.testing.assert_allclose(packed, np.asarray(layer(x, bias=bias))[tokens], atol=1e-6)


def test_softmax_is_in_float32_in_half_precision() -> None:
    layer = MultiHeadAttention(1, 1, dtype="mixed_bfloat16")
    layer.build((None, None, 1))
    for dense in (layer.query, layer.key, layer.value, layer.output_dense):
        dense.kernel.assign([[1.0]])
    # A bias that bfloat16 would round to 100 decides between two keys.
    bias = np.array([100.0, 100.2], np.float32)[None, None, None]
    out = layer(np.array([[[0.0], [0.0]]], "f"), np.array([[[0.0], [1.0]]], "f"), bias=bias)
    np.testing.assert_allclose(np.asarray(out, "f")[0, 0, 0], 1 / (1 + np.exp(-0.2)), atol=3e-3)


def test_biases_and_scaled_scores_by_hand() -> None:
    layer = MultiHeadAttention(1, 4, scaled=True, use_bias=True, stddev=0.02)
    layer.build((None, None, 4))
    rng = np.random.default_rng(0)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    x = rng.normal(size=(2, 3, 4)).astype("f")
    dense = layer.linear_layers
    q, k, v = (
        x @ np.asarray(dense[role].kernel) + np.asarray(dense[role].bias)
        for role in ("query", "key", "value")
    )
    mixed = softmax(q @ k.transpose(0, 2, 1) / 2, axis=-1) @ v
    expected = mixed @ np.asarray(dense["output"].kernel) + np.asarray(dense["output"].bias)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)
