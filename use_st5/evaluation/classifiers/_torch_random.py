"""The initial weights that torch draws, without torch.

Torch's generator on the CPU is the Mersenne Twister, seeded as NumPy's `RandomState` is; a float32
uniform number is made of the 24 low bits of a 32-bit draw (ATen/core/TransformationHelper.h).
"""

from __future__ import annotations

import math

import numpy as np


def linear(
    random: np.random.RandomState, inputs: int, outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights `[outputs, inputs]` and biases `[outputs]` as `torch.nn.Linear` initialises them.

    Equal to the last bit after `torch.manual_seed(seed)` where `random` is `RandomState(seed)` and
    neither was used before (`kaiming_uniform_` with a = √5; torch/nn/modules/linear.py).
    """
    gain = math.sqrt(2 / (1 + math.sqrt(5) ** 2))
    weights = _uniform(random, outputs * inputs, math.sqrt(3) * (gain / math.sqrt(inputs)))
    return weights.reshape(outputs, inputs), _uniform(random, outputs, 1 / math.sqrt(inputs))


def _uniform(random: np.random.RandomState, count: int, bound: float) -> np.ndarray:
    """Float32 numbers of [-bound, bound)."""
    bits = random.randint(0, 2**32, size=count, dtype=np.uint32) & np.uint32(2**24 - 1)
    limit = np.float64(np.float32(bound))
    # Torch multiplies and adds with one rounding; so does float64 here.
    return (bits * 2.0**-24 * (2 * limit) - limit).astype(np.float32)
