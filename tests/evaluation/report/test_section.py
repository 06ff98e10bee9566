from __future__ import annotations

import math

import pytest

from use_st5.evaluation.report.section import (
    MISSING,
    UNDEFINED,
    Cell,
    describe,
    mark_best,
    number,
    probability,
    score_cell,
)


@pytest.mark.parametrize(
    ("value", "statistic", "text"),
    [
        (0.66004, "spearman_all", "66.00"),
        (-0.1, "matthews", "−10.00"),
        (0.0, "accuracy", "0.00"),
        (-0.00001, "pearson_mean", "0.00"),
        (1.381, "effect_size", "1.38"),
        (-0.372, "effect_size", "−0.37"),
        (0.2514, "alignment_above_4", "0.251"),
        (-1.9, "uniformity", "−1.900"),
        (12.346, "perplexity", "12.35"),
        (None, "spearman_all", MISSING),
        (math.nan, "spearman_all", UNDEFINED),
    ],
)
def test_scores_are_shown_in_their_unit(value: float | None, statistic: str, text: str) -> None:
    assert score_cell(value, statistic).text == text


def test_missing_and_undefined_are_no_zero_and_differ() -> None:
    missing, undefined = score_cell(None, "accuracy"), score_cell(math.nan, "accuracy")
    assert (missing.state, undefined.state) == ("missing", "undefined")
    assert missing.value is None
    assert undefined.value is None
    assert score_cell(0.0, "accuracy").state == "value"


def test_the_aggregation_is_named() -> None:
    assert describe("spearman_all").startswith("Spearman correlation × 100, aggregation “all”")
    assert "weighted" in describe("pearson_wmean")
    assert "angular" in describe("pearson_angular_all")
    assert "“all”" in describe("pearson_angular_all")
    assert describe("f1_dev") == "F1 × 100 on the development gold that chose its threshold"
    assert describe("accuracy") == "accuracy × 100"
    assert describe("effect_size") == "effect size"


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0345, "p = 0.035"), (1e-7, "p < 0.001"), (1.0, "p = 1.000"), (None, "")],
)
def test_p_can_be_read(p: float | None, text: str) -> None:
    assert probability(p) == text


def test_an_undefined_p_says_so() -> None:
    assert probability(math.nan) == "p undefined"


def marked(values: list[float | None], *, higher: bool = True) -> list[bool]:
    return [
        cell.best for cell in mark_best([score_cell(v, "accuracy") for v in values], higher=higher)
    ]


def test_the_best_is_marked_and_all_that_look_like_it() -> None:
    assert marked([0.5, 0.7, None]) == [False, True, False]
    assert marked([0.5, 0.7, math.nan], higher=False) == [True, False, False]
    assert marked([0.70001, 0.70004, 0.6]) == [True, True, False]


def test_one_number_alone_is_not_the_best() -> None:
    assert marked([0.5, None]) == [False, False]
    assert mark_best([Cell("512"), Cell("384")]) == [Cell("512"), Cell("384")]


def test_numbers_have_a_true_minus_and_no_minus_before_zero() -> None:
    assert number(-0.004, 2) == "0.00"
    assert number(-1.0, 1) == "−1.0"
