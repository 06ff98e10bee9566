"""Sinusoidal positions, which need no weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

_LONGEST_WAVE = 10_000.0


def sinusoidal_positions(length: Any, dim: int) -> Any:
    """The position signal of a Transformer (Vaswani et al. 2017, section 3.5).

    The order is that of tensor2tensor: first all sines, then all cosines. The wavelengths are 2π to
    10,000·2π.

    Args:
        length: Number of positions.
        dim: Width of the model, an even number.

    Returns:
        float32 `[length, dim]`.

    Raises:
        ValueError: `dim` is odd or below 4.
    """
    if dim < 4 or dim % 2:
        raise ValueError(f"dim: expected an even number from 4 on, received {dim}.")
    waves = dim // 2
    rates = _LONGEST_WAVE ** (-np.arange(waves) / (waves - 1))
    angles = ops.cast(ops.arange(length), "float32")[:, None] * rates.astype(np.float32)[None]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=1)
