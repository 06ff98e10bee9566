from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from use_st5.bias._partitions import count_partitions

GENERATOR = np.random.default_rng(0)


def test_by_hand() -> None:
    # The six sums of two of 1, -0.2, 0.2, -1: 0.8 (observed), 1.2, 0, 0, -1.2 and -0.8.
    scores = np.array([1, -0.2, 0.2, -1])
    assert count_partitions(scores, 6, GENERATOR) == (2, 6, True)
    # 1 - 1 is tied with 0.2 - 0.2; above are 0.8 and 1.2.
    assert count_partitions(scores[[0, 3, 1, 2]], 6, GENERATOR) == (4, 6, True)


def difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
    return x.mean(axis=axis) - y.mean(axis=axis)


@pytest.mark.parametrize("rounded", [False, True])
def test_exact_p_is_that_of_scipy(rounded: bool) -> None:
    for seed in range(5):
        scores = np.random.default_rng(seed).normal([0.4] * 5 + [0] * 5)
        scores = scores.round() if rounded else scores  # rounded: many ties
        count, partitions, exact = count_partitions(scores, 252, GENERATOR)
        peer = stats.permutation_test(
            (scores[:5], scores[5:]), difference, alternative="greater", n_resamples=np.inf
        )
        assert exact
        assert count / partitions == pytest.approx(peer.pvalue, abs=1e-12)


def test_monotone_maps_that_keep_sums_in_order_keep_the_count() -> None:
    scores = np.random.default_rng(1).normal(size=12)
    whole = count_partitions(scores, 924, GENERATOR)
    assert count_partitions(5 * scores + 3, 924, GENERATOR) == whole
    shuffled = np.concatenate([scores[:6][::-1], np.roll(scores[6:], 2)])
    assert count_partitions(shuffled, 924, GENERATOR) == whole


def test_sampled_p_is_near_the_exact_one() -> None:
    scores = np.random.default_rng(3).normal([0.4] * 8 + [0] * 8)
    count, partitions, exact = count_partitions(scores, 12_870, GENERATOR)
    assert (partitions, exact) == (math.comb(16, 8), True)
    p = count / partitions
    assert 0.02 < p < 0.98  # else the comparison would say little
    drawn, samples, exact = count_partitions(scores, 12_869, np.random.default_rng(0))
    assert (samples, exact) == (12_869, False)
    assert abs(drawn / samples - p) < 4 * math.sqrt(p * (1 - p) / samples)


def test_the_observed_partition_is_counted_with_the_drawn_ones() -> None:
    apart = np.array([1.0] * 20 + [-1.0] * 20)
    assert count_partitions(apart, 100, GENERATOR) == (1, 100, False)
    assert count_partitions(-apart, 50, GENERATOR) == (50, 50, False)


def test_blocks_count_every_partition_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(4).normal(size=8)
    whole = count_partitions(scores, 70, GENERATOR)
    monkeypatch.setattr("use_st5.bias._partitions.BLOCK", 24)  # three partitions of eight targets
    assert count_partitions(scores, 70, GENERATOR) == whole
    # 49 draws: the last block is short. The observed partition is the least, all are above it.
    assert count_partitions(np.sort(scores), 50, GENERATOR) == (50, 50, False)
