"""The positions of the points in the plots."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.differences import Difference
from use_st5.evaluation.report.plots import (
    Plot,
    bias_plot,
    difference_plot,
    geometry_plot,
)


def said(plot: Plot | None) -> list[str]:
    """The tooltips of the marks: series, row, value and interval."""
    assert plot is not None
    return [each.text or "" for each in ElementTree.fromstring(plot.svg).iter("title")]


def test_bars_have_intervals_and_models_without_the_test_have_none() -> None:
    scores = {"effect_size": 1.381, "effect_size_low": -0.204, "effect_size_high": 1.5}
    names = ["Flowers", "Insects", "Pleasant", "EuropeanAmericanNames"]
    tests = {"weat1": entry("weat", "WEAT1", scores, categories=names)}
    plot = bias_plot([record("a", tests), record("b", {})], tests)
    (bar,) = said(plot)
    assert bar.startswith("a, WEAT1 Flowers / Insects Pleasant / European American Names: 1.381")
    assert bar.endswith("(-0.204 to 1.5)")


def test_a_point_for_each_model_with_both_measures() -> None:
    both = {"uniformity": -2.0, "alignment_above_4": 0.2}
    models = [
        record("a", {"geometry": entry("geometry", "G", both)}),
        record("b", {"geometry": entry("geometry", "G", both | {"alignment_above_4": None})}),
    ]
    assert said(geometry_plot(models)) == ["a: 0.2"]
    assert geometry_plot(models[1:]) is None


def test_differences_have_a_row_a_task_and_no_mark_for_the_baseline() -> None:
    models = [record(name, {}) for name in "abc"]
    found = {"STS12": {"b": Difference(0.05, 0.01, 0.09)}, "MR": {"c": Difference(-0.1, -0.2, 0.0)}}
    plot = difference_plot(models, "a", found)
    assert said(plot) == ["b, STS12: 5 (1 to 9)", "c, MR: -10 (-20 to 0)"]
    assert "Difference to a by task" in plot.caption
