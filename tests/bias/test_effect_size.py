from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from use_st5.bias._effect_size import bootstrap_interval, effect_sizes


def interval(
    x: np.ndarray, y: np.ndarray, *, ddof: int = 1, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    generator = np.random.default_rng(seed)
    return bootstrap_interval(x, y, ddof=ddof, resamples=resamples, generator=generator)


def cases(size: int, *, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(apart, 1, size), generator.normal(0, 1, size)


def test_effect_size_by_hand() -> None:
    x, y = np.array([[1, -0.2], [3, 1]]), np.array([[0.2, -1], [1, 3]])
    # Means 0.4 and -0.4; the mean of all is 0, their squares sum to 2.08. Then both means are 2.
    assert effect_sizes(x, y, 1) == pytest.approx([0.8 / math.sqrt(2.08 / 3), 0])
    assert effect_sizes(x, y, 0) == pytest.approx([0.8 / math.sqrt(2.08 / 4), 0])


def test_effect_size_is_bounded_and_reaches_its_bound() -> None:
    ones = np.ones(7)
    assert effect_sizes(ones, -ones, 0) == pytest.approx(2)
    x, y = np.random.default_rng(0).normal(size=(2, 500, 7))
    assert np.abs(effect_sizes(x + 9, y, 0)).max() < 2


def test_chance_alone_gives_the_spread_that_the_documentation_tells() -> None:
    scores = np.random.default_rng(0).normal(size=16)
    halves = np.random.default_rng(1).permuted(np.tile(scores, (20_000, 1)), axis=1)
    spread = effect_sizes(halves[:, :8], halves[:, 8:], 1).std()
    assert spread == pytest.approx(math.sqrt(2 / 8), rel=0.02)


def test_targets_associated_alike_have_no_effect_size() -> None:
    assert np.isnan(effect_sizes(np.full(3, 0.1 + 0.2), np.full(3, 0.3), 1))


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
    # Of x = (0, 1) the resamples (0, 0), (0, 1), (1, 0) and (1, 1) are equally likely, y stays: d
    # is 0 / 0, so left out, in a quarter of the cases; 0.5 / std(0, 1, 0, 0) = 0.5 / 0.5 = 1 in two
    # quarters; and 1 / std(1, 1, 0, 0) = 1 / √(1 / 3) = √3 in one, the upper third of those left.
    low, high = interval(np.array([0.0, 1]), np.zeros(2))
    assert (low, high) == pytest.approx((1, math.sqrt(3)))


def test_swapping_targets_mirrors_the_interval() -> None:
    x, y = cases(25, apart=0.8, seed=2)
    low, high = interval(x, y)
    assert interval(y, x) == pytest.approx((-high, -low), abs=0.05)
    assert interval(7 * x - 2, 7 * y - 2) == pytest.approx((low, high))


@pytest.mark.parametrize(("size", "least"), [(8, 0.86), (25, 0.88)])
def test_interval_holds_the_true_effect_mostly(size: int, least: float) -> None:
    apart = 0.7
    true = apart / math.sqrt(1 + apart**2 / 4)  # the variance of both groups together
    held = 0
    for seed in range(300):
        low, high = interval(*cases(size, apart=apart, seed=seed), resamples=400, seed=seed)
        held += low <= true <= high
    assert least < held / 300 < 0.98


def test_without_spread_there_is_no_interval() -> None:
    for x, y in ((np.ones(3), np.ones(3)), (np.ones(1), np.zeros(1))):
        assert np.isnan(interval(x, y)).all()


def test_blocks_do_not_change_how_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = cases(8, apart=1, seed=3)
    whole = interval(x, y)
    monkeypatch.setattr("use_st5.bias._effect_size.BLOCK", 16 * 999)  # the last block has ten
    assert interval(x, y) == pytest.approx(whole, abs=0.05)
