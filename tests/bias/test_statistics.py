from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from use_st5.bias.weat import bootstrap_interval, count_partitions, effect_sizes


def interval(
    x: np.ndarray, y: np.ndarray, *, ddof: int = 1, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    generator = np.random.default_rng(seed)
    return bootstrap_interval(x, y, ddof=ddof, resamples=resamples, generator=generator)


def cases(size: int, *, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(apart, 1, size), generator.normal(0, 1, size)


def test_chance_alone_gives_the_spread_that_the_documentation_tells() -> None:
    scores = np.random.default_rng(0).normal(size=16)
    halves = np.random.default_rng(1).permuted(np.tile(scores, (20_000, 1)), axis=1)
    spread = effect_sizes(halves[:, :8], halves[:, 8:], 1).std()
    assert spread == pytest.approx(math.sqrt(2 / 8), rel=0.02)


@pytest.mark.parametrize(("size", "apart"), [(6, 0.5), (8, 1.5), (25, 1.0)])
@pytest.mark.parametrize("ddof", [0, 1])
def test_interval_is_that_of_scipy(size: int, apart: float, ddof: int) -> None:
    x, y = cases(size, apart=apart, seed=size)

    def statistic(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        spread = np.concatenate([x, y], axis=axis).std(axis=axis, ddof=ddof)
        return (x.mean(axis=axis) - y.mean(axis=axis)) / spread

    peer = stats.bootstrap(
        (x, y), statistic, method="percentile", n_resamples=10_000, rng=np.random.default_rng(1)
    )
    # The percentiles of 10,000 resamples differ by about 0.01 from draw to draw.
    ours = interval(x, y, ddof=ddof)
    assert ours == pytest.approx(peer.confidence_interval, abs=0.05)
    assert ours != interval(x, y, ddof=ddof, seed=1)
    assert ours == interval(x, y, ddof=ddof)


def test_interval_by_hand() -> None:
    # The resamples (0, 0), (0, 1), (1, 0) and (1, 1) of x are equally likely; y does not change.
    # d is 0 / 0, and so left out, in a quarter of the cases; 0.5 / std(0, 1, 0, 0) = 0.5 / 0.5 = 1
    # in two quarters; and 1 / std(1, 1, 0, 0) = √3 in one, the upper third of those left.
    low, high = interval(np.array([0.0, 1]), np.zeros(2))
    assert (low, high) == pytest.approx((1, math.sqrt(3)))


@pytest.mark.parametrize(("size", "least"), [(8, 0.86), (25, 0.88)])
def test_interval_holds_the_true_effect_mostly(size: int, least: float) -> None:
    apart = 0.7
    true = apart / math.sqrt(1 + apart**2 / 4)  # the variance of both groups together
    held = 0
    for seed in range(300):
        low, high = interval(*cases(size, apart=apart, seed=seed), resamples=400, seed=seed)
        held += low <= true <= high
    assert least < held / 300 < 0.98


def test_blocks_do_not_change_how_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = cases(8, apart=1, seed=3)
    whole = interval(x, y)
    monkeypatch.setattr("use_st5.bias.weat.BLOCK", 16 * 999)  # the last block has ten
    assert interval(x, y) == pytest.approx(whole, abs=0.05)


GENERATOR = np.random.default_rng(0)


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


def test_sampled_p_is_near_the_exact_one() -> None:
    scores = np.random.default_rng(3).normal([0.4] * 8 + [0] * 8)
    count, partitions, exact = count_partitions(scores, 12_870, GENERATOR)
    assert (partitions, exact) == (math.comb(16, 8), True)
    p = count / partitions
    assert 0.02 < p < 0.98  # otherwise the comparison would show little
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
    monkeypatch.setattr("use_st5.bias.weat.BLOCK", 24)  # three partitions of eight targets
    assert count_partitions(scores, 70, GENERATOR) == whole
    # 49 draws: the last block is short. The observed partition is the least, all are above it.
    assert count_partitions(np.sort(scores), 50, GENERATOR) == (50, 50, False)
