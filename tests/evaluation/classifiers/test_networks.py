from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from use_st5.evaluation.classifiers._networks import (
    OPTIMIZERS,
    Adam,
    Networks,
    RMSprop,
    torch_linear,
)


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


def test_torch_draws_these_numbers() -> None:
    # torch 2.13: manual_seed(1111), Linear(3, 2), Linear(2, 2)
    random = np.random.RandomState(1111)
    weights, biases = torch_linear(random, 3, 2)
    assert weights.dtype == biases.dtype == np.float32
    assert weights.tolist() == [
        [-0.04549999535083771, -0.47922441363334656, 0.34750422835350037],
        [-0.11873110383749008, 0.5251538157463074, 0.11337392777204514],
    ]
    assert biases.tolist() == [-0.02067270688712597, 0.5133672952651978]
    weights, biases = torch_linear(random, 2, 2)
    assert weights.tolist() == [
        [0.020534450188279152, 0.4420081675052643],
        [-0.2655201554298401, 0.6726028323173523],
    ]
    assert biases.tolist() == [0.5298776030540466, 0.30914121866226196]


@pytest.mark.parametrize("seed", [0, 1111, 2**32 - 1])
@pytest.mark.parametrize(("inputs", "outputs"), [(512, 2), (1, 1), (7, 50), (1024, 3)])
def test_every_bit_is_torchs(seed: int, inputs: int, outputs: int) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    random = np.random.RandomState(seed)
    for size in ((inputs, outputs), (outputs, 6)):
        expected = torch.nn.Linear(*size)
        weights, biases = torch_linear(random, *size)
        assert np.array_equal(weights, expected.weight.detach().numpy())
        assert np.array_equal(biases, expected.bias.detach().numpy())


def row(*numbers: float) -> np.ndarray:
    return np.array([numbers], np.float32)


def test_adam_by_hand() -> None:
    # The gradient with decay is 3 + 0.5·2 = 4. Step 1: both moments corrected are 4 and 16.
    adam = Adam(row(2.0), row(0.5))
    adam.step(row(3.0))
    assert adam.parameters[0, 0] == pytest.approx(2 - 1e-3 * 4 / (4 + 1e-8), abs=1e-7)
    # Step 2, gradient −1 + 0.5·1.999 = −0.0005: m = 0.9·0.4 + 0.1·g, v = 0.999·0.016 + 0.001·g².
    g = -1 + 0.5 * 1.999
    m = (0.9 * 0.4 + 0.1 * g) / (1 - 0.9**2)
    v = (0.999 * 0.016 + 0.001 * g * g) / (1 - 0.999**2)
    adam.step(row(-1.0))
    assert adam.parameters[0, 0] == pytest.approx(1.999 - 1e-3 * m / (v**0.5 + 1e-8), abs=1e-7)


def test_rmsprop_by_hand() -> None:
    # v = 0.01·16; the step is 0.01·4/0.4.
    rmsprop = RMSprop(row(2.0), row(0.5))
    rmsprop.step(row(3.0))
    assert rmsprop.parameters[0, 0] == pytest.approx(1.9, abs=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_kept_rows_go_on_as_if_nothing_had_happened(name: str) -> None:
    random = np.random.default_rng(0)
    start, decay = random.random((2, 4, 3), np.float32)
    gradients = random.normal(size=(6, 4, 3)).astype(np.float32)
    whole, part = (OPTIMIZERS[name](start.copy(), decay) for _ in range(2))
    rows = np.array([False, True, False, True])
    for number, gradient in enumerate(gradients):
        whole.step(gradient.copy())
        if number == 3:
            part.keep(rows)
        part.step(gradient[rows].copy() if number >= 3 else gradient.copy())
    assert np.array_equal(whole.parameters[rows], part.parameters)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fifty_steps_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(1)
    start = random.normal(size=(2, 5)).astype(np.float32)
    parameters = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[name]
    peer = optimizer([parameters], weight_decay=0.01)
    ours = OPTIMIZERS[name](start.copy(), np.full_like(start, 0.01))
    for _ in range(50):
        gradient = random.normal(size=(2, 5)).astype(np.float32)
        parameters.grad = torch.from_numpy(gradient.copy())
        peer.step()
        ours.step(gradient)
    np.testing.assert_allclose(ours.parameters, parameters.detach().numpy(), rtol=1e-5, atol=1e-6)
