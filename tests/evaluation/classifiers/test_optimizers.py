from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.classifiers._optimizers import OPTIMIZERS, Adam, RMSprop


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
