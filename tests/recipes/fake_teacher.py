"""A teacher that counts letters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from use_st5.recipes._minilm_teacher import DIMENSION


def fake_teacher(*, layers: int = 6) -> Callable[[list[str]], np.ndarray]:
    """Like `minilm_teacher`: `list[str] → [n, DIMENSION]`."""
    projection = np.random.default_rng(layers).normal(size=(256, DIMENSION))

    def encode(sentences: list[str]) -> np.ndarray:
        counts = [np.bincount(bytearray(s, "utf-8"), minlength=256) for s in sentences]
        return np.array(counts) @ projection

    return encode
