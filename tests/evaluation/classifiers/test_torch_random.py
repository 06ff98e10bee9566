from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.classifiers import _torch_random


def test_torch_draws_these_numbers() -> None:
    # torch 2.13: manual_seed(1111), Linear(3, 2), Linear(2, 2)
    random = np.random.RandomState(1111)
    weights, biases = _torch_random.linear(random, 3, 2)
    assert weights.dtype == biases.dtype == np.float32
    assert weights.tolist() == [
        [-0.04549999535083771, -0.47922441363334656, 0.34750422835350037],
        [-0.11873110383749008, 0.5251538157463074, 0.11337392777204514],
    ]
    assert biases.tolist() == [-0.02067270688712597, 0.5133672952651978]
    weights, biases = _torch_random.linear(random, 2, 2)
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
        weights, biases = _torch_random.linear(random, *size)
        assert np.array_equal(weights, expected.weight.detach().numpy())
        assert np.array_equal(biases, expected.bias.detach().numpy())
