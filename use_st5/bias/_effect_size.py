"""The effect size d of an association test, and how far other targets could have moved it."""

from __future__ import annotations

import numpy as np

from use_st5.bias._partitions import BLOCK, TIE

_LEVEL = 0.95


def effect_sizes(x: np.ndarray, y: np.ndarray, ddof: int) -> np.ndarray:
    """`(mean_x s − mean_y s) / std_{x ∪ y} s` along the last axis; NaN where all s are equal.

    Args:
        x: Associations s of the first targets, `[..., n]`.
        y: Those of the second targets, `[..., n]`.
        ddof: The standard deviation divides by `2n − ddof`.
    """
    both = np.concatenate([x, y], axis=-1)
    alike = np.ptp(both, axis=-1) <= TIE
    spread = np.where(alike, np.nan, both.std(axis=-1, ddof=ddof))
    return (x.mean(axis=-1) - y.mean(axis=-1)) / spread


def bootstrap_interval(
    x: np.ndarray, y: np.ndarray, *, ddof: int, resamples: int, generator: np.random.Generator
) -> tuple[float, float]:
    """The 2.5th and the 97.5th percentile of d over resampled targets.

    Each resample draws n targets of x and n of y with replacement, the groups apart (Efron and
    Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13). Resamples whose targets are
    all associated alike have no d and are left out.

    A resample repeats targets, so the spread within its groups is too small by a factor of about
    `√((n − 1) / n)`: with few targets the interval is somewhat too short and too far from 0. With
    normally distributed s it holds the true d in 91 % of the cases for n = 8, in 93 % for n = 25;
    where d is above 1, in 86 % and 90 %.

    Args:
        x: Associations of the first targets, `[n]`.
        y: Those of the second targets, `[n]`.
        ddof: As in `effect_sizes`.
        resamples: How many.
        generator: Of the draws.

    Returns:
        Both ends; NaN where a single target, or no resample, shows any spread.
    """
    size = len(x)
    block = max(1, BLOCK // (2 * size))
    drawn = []
    for start in range(0, resamples, block):
        shape = (min(block, resamples - start), size)
        rows_x, rows_y = (generator.integers(size, size=shape) for _ in "xy")
        drawn.append(effect_sizes(x[rows_x], y[rows_y], ddof))
    values = np.concatenate(drawn)
    values = values[~np.isnan(values)]
    if size < 2 or not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)
