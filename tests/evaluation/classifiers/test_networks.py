from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from use_st5.evaluation.classifiers._networks import Networks


def loss(
    networks: Networks, row: np.ndarray, x: np.ndarray, y: np.ndarray, mask: np.ndarray | None
) -> float:
    """The sum over the networks of one group of their mean cross-entropies, network by network."""
    total = 0.0
    for place in range(networks.count):
        (weights, biases), *more = [
            (weights[0, place], biases[0, place]) for weights, biases in networks.unpack(row[None])
        ]
        outputs = x @ weights.T + biases
        for weights, biases in more:
            outputs = expit(outputs if mask is None else outputs * mask.T) @ weights.T + biases
        total -= log_softmax(outputs, axis=1)[np.arange(len(y)), y].mean()
    return total


@pytest.mark.parametrize(("hidden", "dropout"), [(0, 0.0), (5, 0.0), (5, 0.5)])
def test_the_gradient_is_that_of_the_cross_entropy(hidden: int, dropout: float) -> None:
    random = np.random.default_rng(0)
    networks = Networks(count=3, inputs=4, hidden=hidden, classes=3, dropout=dropout)
    size = networks.count * sum(outputs * (inputs + 1) for inputs, outputs in networks.sizes())
    rows = random.normal(size=(2, size))
    x = random.normal(size=(2, 8, 4))
    y = random.integers(0, 3, (2, 8))
    mask = random.integers(0, 2, (1, 1, hidden, 8)) * 2.0 if dropout else None
    gradient = np.empty_like(rows)
    networks.gradient(rows, x, np.eye(3, dtype=bool)[y].swapaxes(1, 2)[:, None], gradient, mask)
    for group in range(2):
        factors = None if mask is None else mask[0, 0]
        for place in range(size):
            step = np.zeros(size)
            step[place] = 1e-6
            ends = [
                loss(networks, rows[group] + sign * step, x[group], y[group], factors)
                for sign in (1, -1)
            ]
            assert gradient[group, place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)


def test_packed_layers_come_back_for_every_network() -> None:
    random = np.random.default_rng(0)
    networks = Networks(count=2, inputs=4, hidden=3, classes=2)
    layers = [(random.random((3, 4)), random.random(3)), (random.random((2, 3)), random.random(2))]
    for packed, layer in zip(networks.unpack(networks.pack(layers)[None]), layers, strict=True):
        for array, expected in zip(packed, layer, strict=True):
            assert np.array_equal(array, np.stack([expected, expected])[None])


def test_large_activations_do_not_overflow() -> None:
    networks = Networks(count=1, inputs=1, hidden=0, classes=2)
    rows = np.array([[1e4, -1e4, 0, 0]], np.float32)
    gradient = np.empty_like(rows)
    targets = np.array([[[[False], [True]]]])
    networks.gradient(rows, np.ones((1, 1, 1), np.float32), targets, gradient)
    assert gradient.tolist() == [[1, -1, 1, -1]]
