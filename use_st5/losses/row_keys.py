"""One number for a row of ids, to compare rows by."""

from __future__ import annotations

import numpy as np


def key_factors(length: int) -> np.ndarray:
    """A random odd factor for each position, int64 `[length]`.

    The key of a row is `Σ id · factor` modulo 2^64. Padding with 0 does not count. Equal rows have
    equal keys; two rows that differ in one id never do, others with a chance of about 1 to 2^63.
    """
    factors = np.random.default_rng(0).integers(2**64, size=length, dtype=np.uint64)
    return (factors | np.uint64(1)).view(np.int64)
