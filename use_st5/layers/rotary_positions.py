"""Rotary positions: queries and keys are rotated by angles that grow with their position."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops


def rotary_angles(length: Any, width: int, theta: float) -> tuple[Any, Any]:
    """Cosines and sines of the angles of each position (Su et al. 2021, arXiv 2104.09864, 3.4.2).

    The angle of pair `i` at position `p` is `p · theta^(-2i / width)`.

    Args:
        length: Number of positions.
        width: Width of a head, an even number.
        theta: The base; a larger base gives a slower rotation.

    Returns:
        `(cosines, sines)`, both float32 `[length, width / 2]`.

    Raises:
        ValueError: `width` is odd.
    """
    if width % 2:
        raise ValueError(f"width: expected an even number for rotary positions, received {width}.")
    # In float32, as in transformers: at 8,000 positions, the rounding of a rate matters.
    powers = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    rates = np.float32(1) / np.float32(theta) ** powers
    angles = ops.cast(ops.arange(length), "float32")[:, None] * rates[None]
    return ops.cos(angles), ops.sin(angles)


def rotated(x: Any, angles: tuple[Any, Any]) -> Any:
    """Rotates each pair of entries of `[batch, heads, length, width]`, computed in float32.

    Entry `i` and entry `i + width / 2` are a pair. The angles are those of `rotary_angles`.
    """
    cosines, sines = angles
    one, two = ops.split(ops.cast(x, "float32"), 2, axis=-1)
    turned = ops.concatenate([one * cosines - two * sines, two * cosines + one * sines], axis=-1)
    return ops.cast(turned, x.dtype)
