"""The range of scores: the scale of the file, not the lowest and highest score of its rows."""

from __future__ import annotations

import pytest

from use_st5.training.score_range import score_range


@pytest.mark.parametrize(
    ("rows", "low", "middle", "line"),
    [
        ((0.2, 0.7), 0.2, 0.45, "scores: 0.2 … 0.7, not scaled"),
        ((-0.2, 0.9), -0.2, 0.35, "scores: -0.2 … 0.9, not scaled"),
        ((0, 5), 0, 0.5, "scores: 0 … 5, scaled from 0 … 5 to 0 … 1"),
        ((0.5, 4.5), 0.1, 0.5, "scores: 0.5 … 4.5, scaled from 0 … 5 to 0 … 1"),
        ((1, 4.5), 0, 0.4375, "scores: 1 … 4.5, scaled from 1 … 5 to 0 … 1"),
        ((0, 9), 0, 0.45, "scores: 0 … 9, scaled from 0 … 10 to 0 … 1"),
        ((10, 90), 0.1, 0.5, "scores: 10 … 90, scaled from 0 … 100 to 0 … 1"),
        ((-5, 15), 0, 0.5, "scores: -5 … 15, scaled from -5 … 15 to 0 … 1 (not a usual range"),
    ],
)
def test_the_narrowest_usual_range_that_holds_the_rows(
    rows: tuple[float, float], low: float, middle: float, line: str
) -> None:
    found = score_range("sts.csv", *rows, requested=None)
    assert found.target(rows[0]) == pytest.approx(low)
    assert found.target(sum(rows) / 2) == pytest.approx(middle)
    assert found.line(*rows).startswith(line)


def test_a_range_that_is_asked_for() -> None:
    found = score_range("sts.csv", 1, 4, requested=(0, 4))
    assert [found.target(score) for score in (0, 1, 4)] == [0, 0.25, 1]
    assert score_range("cos.csv", -0.5, 0.5, requested=(-1, 1)).target(0) == 0.5
    with pytest.raises(ValueError, match=r"sts.csv: expected scores from 0 to 3, .* found .* 1 to"):
        score_range("sts.csv", 1, 4, requested=(0, 3))
