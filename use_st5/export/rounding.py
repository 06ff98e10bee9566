"""Matrices of weights as codes of few bits, in NumPy."""

from __future__ import annotations

import numpy as np

_LARGEST = 127
# The step of a row of median size at rank `_RANK`, as a part of its size. Larger steps make files
# smaller and change vectors more: the rows of use_dan_en have 2.7 bits a weight when packed.
_STEP = 0.35
_RANK = 5000


def int8_codes(weights: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounds weights to codes in −127 … 127 with a scale for all entries along an axis.

    Args:
        weights: float32 `[rows, columns]`.
        axis: 1: a scale for each row; 0: for each column.

    Returns:
        int8 `[rows, columns]`, and float32 `[rows, 1]` or `[1, columns]`.
    """
    _check_finite(weights, axis)
    largest = np.abs(weights).max(axis=axis, keepdims=True)
    scales = np.where(largest > 0, largest / _LARGEST, 1.0).astype(np.float32)
    return np.rint(weights / scales).clip(-_LARGEST, _LARGEST).astype(np.int8), scales


def codes_by_frequency(table: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds the rows of a table to multiples of steps that are finer for frequent rows.

    The step of a row grows with the square root of its size and the cube root of its rank. Few
    codes differ from 0, so that they take few bits when they are packed.

    Args:
        table: float32 `[rows, dim]`.
        ranks: int `[rows]`: 0 for the rows that occur most often in texts.

    Returns:
        int8 `[rows, dim]`, and float32 `[rows, 1]`.
    """
    _check_finite(table, 1)
    sizes = np.sqrt(np.square(table, dtype=np.float32).mean(axis=1))
    rarity = np.cbrt((ranks + _RANK / 100) / _RANK)
    steps = _STEP * np.sqrt(sizes * np.median(sizes)) * rarity
    # Codes are 127 at most.
    steps = np.maximum(steps, np.abs(table).max(axis=1) / _LARGEST)
    scales = np.where(steps > 0, steps, 1.0).astype(np.float32)[:, None]
    return np.rint(table / scales).clip(-_LARGEST, _LARGEST).astype(np.int8), scales


def _check_finite(weights: np.ndarray, axis: int) -> None:
    if len(wrong := np.flatnonzero(~np.isfinite(weights).all(axis=axis))):
        raise ValueError(
            "Expected a matrix of finite numbers to quantise, received NaN or infinity in "
            f"{'rows' if axis else 'columns'} {wrong[:5].tolist()} (the first five)."
        )
