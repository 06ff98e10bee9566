"""Relative, rotary and sinusoidal positions."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest

from use_st5.layers.positions import (
    RelativePositionBias,
    relative_position_bucket,
    rotary_angles,
    rotated,
    sinusoidal_positions,
)

# Key minus query → bucket: values of t5x/examples/t5/layers.py (reference facts, section 4.6).
ENCODER = {
    -1000: 15, -127: 15, -64: 14, -32: 12, -16: 10, -12: 9, -9: 8, -8: 8, -7: 7, -1: 1, 0: 0,
    1: 17, 7: 23, 8: 24, 16: 26, 64: 30, 128: 31, 1000: 31,
}  # fmt: skip
DECODER = {5: 0, 0: 0, -1: 1, -15: 15, -24: 19, -32: 21, -64: 26, -113: 31, -1000: 31}


@pytest.mark.parametrize(("golden", "bidirectional"), [(ENCODER, True), (DECODER, False)])
def test_golden_buckets(golden: dict[int, int], bidirectional: bool) -> None:
    positions = keras.ops.convert_to_tensor([*golden], "int32")
    buckets = relative_position_bucket(positions, bidirectional=bidirectional)
    assert dict(zip(golden, np.asarray(buckets).tolist(), strict=True)) == golden


def test_a_bias_depends_on_the_distance_alone() -> None:
    layer = RelativePositionBias(3, bidirectional=True)
    layer.build()
    bias = np.asarray(layer(query_length=40, key_length=50))
    assert bias.shape == (1, 3, 40, 50)
    np.testing.assert_array_equal(bias[..., 1:, 1:], bias[..., :-1, :-1])
    np.testing.assert_array_equal(bias[0, :, 5, 5], np.asarray(layer.table)[0])
    np.testing.assert_array_equal(bias[0, :, 5, 6], np.asarray(layer.table)[17])


def test_the_bias_of_a_half_precision_model_is_not_rounded() -> None:
    layer = RelativePositionBias(2, bidirectional=True, dtype="mixed_bfloat16")
    layer.build()
    layer.table.assign(np.full((32, 2), 1.001, np.float32))
    bias = layer(query_length=2, key_length=2)
    assert bias.dtype == "float32"
    np.testing.assert_allclose(np.asarray(bias), 1.001, rtol=1e-7)


def test_pairs_turn_like_complex_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype(np.float32)
    turned = np.asarray(rotated(x, rotary_angles(5, 6, 100.0)))
    rates = 100.0 ** (-np.arange(3) / 3)
    expected = (x[..., :3] + 1j * x[..., 3:]) * np.exp(1j * np.arange(5)[:, None] * rates)
    np.testing.assert_allclose(turned[..., :3], expected.real, atol=1e-5)
    np.testing.assert_allclose(turned[..., 3:], expected.imag, atol=1e-5)


def test_by_hand() -> None:
    signal = np.asarray(sinusoidal_positions(3, 4))
    expected = [[math.sin(p), math.sin(p / 1e4), math.cos(p), math.cos(p / 1e4)] for p in range(3)]
    np.testing.assert_allclose(signal, expected, atol=1e-6)
