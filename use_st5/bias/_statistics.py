"""The effect size d of an association test, its p-value and its interval."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator

import numpy as np

from use_st5.io.lines import batched

_LEVEL = 0.95
# Cosines carry rounding errors of about 1e-16 times the square root of the dimension; statistics
# of two partitions that differ by less than this are tied.
TIE = 1e-12
# Numbers in a block of partitions or of resamples: limits the memory, however many there are.
BLOCK = 2**20


def effect_sizes(x: np.ndarray, y: np.ndarray, ddof: int) -> np.ndarray:
    """`(mean_x s − mean_y s) / std_{x ∪ y} s` along the last axis; NaN if all s are equal.

    Args:
        x: Associations s of the first targets, `[..., n]`.
        y: Associations of the second targets, `[..., n]`.
        ddof: The standard deviation divides by `2n − ddof`.
    """
    associations = np.concatenate([x, y], axis=-1)
    tied = np.ptp(associations, axis=-1) <= TIE
    spread = np.where(tied, np.nan, associations.std(axis=-1, ddof=ddof))
    return (x.mean(axis=-1) - y.mean(axis=-1)) / spread


def bootstrap_interval(
    x: np.ndarray, y: np.ndarray, *, ddof: int, resamples: int, generator: np.random.Generator
) -> tuple[float, float]:
    """The 2.5th and the 97.5th percentile of d over resampled targets.

    Each resample draws n targets of x and, separately, n targets of y with replacement (Efron and
    Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13). Resamples whose targets all
    have the same association have no d and are left out.

    A resample repeats targets, so the spread within its groups is too small by a factor of about
    `√((n − 1) / n)`: with few targets the interval is somewhat too short and too far from 0. With
    normally distributed s, it contains the true d in 91 % of the cases for n = 8 and in 93 % for
    n = 25; if d is above 1, in 86 % and 90 %.

    Args:
        x: Associations of the first targets, `[n]`.
        y: Associations of the second targets, `[n]`.
        ddof: As in `effect_sizes`.
        resamples: Number of resamples.
        generator: Random numbers for the draws.

    Returns:
        Both ends; NaN if a group has a single target, or if no resample has any spread.
    """
    from scipy import stats  # Imported only here: it takes a second.

    size = len(x)
    if size < 2:
        return np.nan, np.nan
    with warnings.catch_warnings():
        # Some resamples have no spread, which scipy's own interval cannot handle.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        values = stats.bootstrap(
            (x, y),
            lambda x, y, axis: effect_sizes(x, y, ddof),
            vectorized=True,
            method="percentile",
            n_resamples=resamples,
            batch=max(1, BLOCK // (2 * size)),
            rng=generator,
        ).bootstrap_distribution
    values = values[~np.isnan(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def count_partitions(
    scores: np.ndarray, samples: int, generator: np.random.Generator
) -> tuple[int, int, bool]:
    """Counts the partitions whose statistic is at least the observed one.

    `scipy.stats.permutation_test` takes five times as long for the same p. Only ties at a statistic
    of 0 differ: its relative tolerance misses those that differ by rounding.

    Args:
        scores: The association of each target, `[2n]`: those of x, then those of y.
        samples: All partitions are counted if there are at most this many; otherwise
            `samples − 1` random ones and the observed one.
        generator: Random numbers for the draws.

    Returns:
        The number of partitions whose statistic is at least the observed one (ties included), the
        number of counted partitions, and whether these are all partitions.
    """
    size = len(scores) // 2
    partitions = math.comb(2 * size, size)
    if partitions <= samples:
        return _count(_all_sums(scores), scores), partitions, True
    return 1 + _count(_drawn_sums(scores, samples - 1, generator), scores), samples, False


def _count(blocks: Iterator[np.ndarray], scores: np.ndarray) -> int:
    """The number of sums over halves that are at least the sum over x.

    The sums order the partitions as the statistic does: it is twice the sum minus a constant.
    """
    observed = scores[: len(scores) // 2].sum()
    return sum(int((sums >= observed - TIE).sum()) for sums in blocks)


def _all_sums(scores: np.ndarray) -> Iterator[np.ndarray]:
    """Sums of the scores over each possible half of the targets, in blocks."""
    halves = itertools.combinations(scores, len(scores) // 2)
    for block in batched(halves, max(1, BLOCK // len(scores))):
        yield np.sum(block, axis=1)


def _drawn_sums(
    scores: np.ndarray, draws: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    """Sums of the scores over halves drawn at random, in blocks."""
    block = max(1, BLOCK // len(scores))
    for start in range(0, draws, block):
        copies = np.tile(scores, (min(block, draws - start), 1))
        yield generator.permuted(copies, axis=1)[:, : len(scores) // 2].sum(axis=1)
