"""The permutation test: how many halves of the targets are associated as strongly as x is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

# Cosines carry rounding errors of about 1e-16 times the square root of the dimension; statistics
# of two partitions that differ by less than this are tied.
TIE = 1e-12
# Numbers in a block of partitions or of resamples: bounds the memory at any number of them.
BLOCK = 2**20


def count_partitions(
    scores: np.ndarray, samples: int, generator: np.random.Generator
) -> tuple[int, int, bool]:
    """Counts the partitions whose statistic is at least the observed one.

    Args:
        scores: The association of each target, `[2n]`: those of x, then those of y.
        samples: All partitions are counted where there are at most so many; otherwise
            `samples − 1` drawn ones and the observed one.
        generator: Of the draws.

    Returns:
        How many are at least the observed one (ties among them), of how many, and whether those
        are all partitions.
    """
    size = len(scores) // 2
    partitions = math.comb(2 * size, size)
    if partitions <= samples:
        return _count(_all_sums(scores), scores), partitions, True
    return 1 + _count(_drawn_sums(scores, samples - 1, generator), scores), samples, False


def _count(blocks: Iterator[np.ndarray], scores: np.ndarray) -> int:
    """How many sums over halves are at least that of x.

    They order the partitions as the statistic does: it is twice the sum minus a constant.
    """
    observed = scores[: len(scores) // 2].sum()
    return sum(int((sums >= observed - TIE).sum()) for sums in blocks)


def _all_sums(scores: np.ndarray) -> Iterator[np.ndarray]:
    """Sums of the scores over each half of the targets once, in blocks."""
    halves = itertools.combinations(scores, len(scores) // 2)
    while block := list(itertools.islice(halves, max(1, BLOCK // len(scores)))):
        yield np.sum(block, axis=1)


def _drawn_sums(
    scores: np.ndarray, draws: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    """Sums of the scores over halves drawn at random, in blocks."""
    block = max(1, BLOCK // len(scores))
    for start in range(0, draws, block):
        copies = np.tile(scores, (min(block, draws - start), 1))
        yield generator.permuted(copies, axis=1)[:, : len(scores) // 2].sum(axis=1)
