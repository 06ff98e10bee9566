"""Intervals and differences: published examples, simulations and invariances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from tests.evaluation.records import entry
from use_st5.evaluation.differences import (
    Difference,
    difference,
    interval,
    mean_difference,
)


def task(name: str, value: float | None, **counts: int) -> dict[str, Any]:
    return entry("group", "Task", {name: value}) | {"counts": counts}


def test_differences_of_shares_are_those_of_newcombe() -> None:
    """Table II of Newcombe (1998), method 10: 56/70 minus 48/80 is 0.0524 to 0.3339."""
    found = difference(task("accuracy", 56 / 70, test=70), task("accuracy", 48 / 80, test=80))
    assert found is not None
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_the_interval_of_a_share_is_wilsons() -> None:
    """Newcombe (1998), interval estimation for the single proportion: 81/263."""
    assert interval(task("accuracy", 81 / 263, train=263)) == pytest.approx(
        (0.2553, 0.3662), abs=1e-4
    )


@pytest.mark.parametrize("name", ["pearson_all", "spearman_all"])
def test_intervals_of_correlations_hold_the_true_one_as_often_as_said(name: str) -> None:
    random, true, held = np.random.default_rng(0), 0.7, 0
    population = 6 / math.pi * math.asin(true / 2) if name.startswith("spearman") else true
    for _ in range(400):
        x = random.normal(size=100)
        y = true * x + math.sqrt(1 - true * true) * random.normal(size=100)
        found = spearmanr(x, y).statistic if "spearman" in name else np.corrcoef(x, y)[0, 1]
        low, high = interval(task(name, float(found), pairs=100)) or (1, -1)
        held += low <= population <= high
    assert 0.92 <= held / 400 <= 0.98


def test_intervals_of_areas_hold_the_true_one_as_often_as_said() -> None:
    random, held, true = np.random.default_rng(0), 0, norm.cdf(1 / math.sqrt(2))
    for _ in range(400):
        positive, negative = random.normal(1, 1, 60), random.normal(0, 1, 80)
        found = float((positive[:, None] > negative).mean())
        low, high = interval(task("auc", found, pairs=140, positive=60)) or (1, -1)
        held += low <= true <= high
    assert 0.91 <= held / 400 <= 0.98


@pytest.mark.parametrize(
    "unknown",
    [
        task("accuracy", 0.5),
        task("accuracy", None, test=100),
        task("spearman_mean", 0.5, pairs=100),
        task("f1_dev", 0.5, pairs=100),
        task("auc", 0.5, pairs=100),
        task("spearman_all", 1.0, pairs=100),
    ],
)
def test_no_interval_where_the_record_lacks_what_it_needs(unknown: dict[str, Any]) -> None:
    assert interval(unknown) is None


def test_a_difference_turns_around_with_its_models() -> None:
    one, two = task("accuracy", 0.8, test=500), task("accuracy", 0.7, test=500)
    there, back = difference(one, two), difference(two, one)
    assert there is not None
    assert back is not None
    assert there == pytest.approx((-back.value, -back.high, -back.low))
    assert there.clear
    same = difference(one, one)
    assert same is not None
    assert not same.clear
    assert difference(one, task("accuracy", None, test=500)) is None
    bare = difference(one, task("accuracy", 0.7))
    assert bare is not None
    assert math.isnan(bare.low)
    assert not bare.clear


def test_means_of_equal_differences_are_surer_by_the_root_of_their_number() -> None:
    found = mean_difference([Difference(1.0, 0.0, 2.0)] * 4)
    assert found == pytest.approx((1.0, 0.5, 1.5))
    assert math.isnan(mean_difference([Difference(1.0, 0.0, 2.0), Difference(1.0)]).low)
