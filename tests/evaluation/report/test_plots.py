"""Where the points of the plots are."""

from __future__ import annotations

import math

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.plots import bias_plot, dice_plot, geometry_plot, source_plot


def sources(scores: dict[str, dict]) -> dict:
    return entry("sts", "By source", {"spearman_mean": 0.5}, sources=scores)


def test_points_are_where_the_scores_are() -> None:
    quintiles = [
        {"dice_from": 0.0, "dice_to": 0.5, "spearman": 0.6},
        {"dice_from": 0.5, "dice_to": 1.0, "spearman": None},
    ]
    dice = entry("sts", "STS-B by shared words", {"spearman_mean": 0.6}, quintiles=quintiles)
    one = {"STS12 MSRpar": {"spearman": 0.5}, "STS13 FNWN": {"spearman": -0.1}}
    two = {"STS13 FNWN": {"spearman": 0.3}}
    models = [
        record("a", {"sts_dice": dice, "sts_sources": sources(one)}),
        record("b", {"sts_sources": sources(two)}),
    ]
    (axes,) = dice_plot(models).draw().axes
    values = axes.lines[0].get_ydata()
    assert values[0] == 60
    assert math.isnan(values[1])
    assert axes.get_xticklabels()[0].get_text() == "0.00 to\n0.50"
    (axes,) = source_plot(models).draw().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["STS12 MSRpar", "STS13 FNWN"]
    first, second = (line.get_xdata() for line in axes.lines)
    assert tuple(first) == (50, -10)
    assert math.isnan(second[0])
    assert second[1] == 30
    assert dice_plot(models[1:]) is None
    assert source_plot([record("c", {})]) is None


def test_bars_have_intervals_and_models_without_the_test_have_none() -> None:
    scores = {"effect_size": 1.381, "effect_size_low": -0.204, "effect_size_high": 1.5}
    names = ["Flowers", "Insects", "Pleasant", "EuropeanAmericanNames"]
    tests = {"weat1": entry("weat", "WEAT1", scores, categories=names)}
    (axes,) = bias_plot([record("a", tests), record("b", {})], "weat", tests).draw().axes
    assert axes.patches[0].get_width() == 1.381
    assert math.isnan(axes.patches[1].get_width())
    assert (-0.204, 1.5) in [tuple(line.get_xdata()) for line in axes.lines]
    (label,) = axes.get_yticklabels()
    assert "European American Names" in " ".join(label.get_text().split())


def test_a_point_for_each_model_with_both_measures() -> None:
    both = {"uniformity": -2.0, "alignment_above_4": 0.2}
    models = [
        record("a", {"geometry": entry("geometry", "G", both)}),
        record("b", {"geometry": entry("geometry", "G", both | {"alignment_above_4": None})}),
    ]
    (axes,) = geometry_plot(models).draw().axes
    assert [(tuple(p.get_xdata()), tuple(p.get_ydata())) for p in axes.lines] == [((-2.0,), (0.2,))]
    assert geometry_plot(models[1:]) is None
