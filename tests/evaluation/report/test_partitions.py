from __future__ import annotations

import math

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import evaluated_models
from use_st5.evaluation.report.partitions import partition_plots
from use_st5.evaluation.report.theme import LIGHT


def test_points_are_where_the_scores_are() -> None:
    quintiles = [
        {"dice_from": 0.0, "dice_to": 0.5, "spearman": 0.6},
        {"dice_from": 0.5, "dice_to": 1.0, "spearman": None},
    ]
    dice = entry("sts", "STS-B by shared words", {"spearman_mean": 0.6}, quintiles=quintiles)
    one = {"STS12 MSRpar": {"spearman": 0.5}, "STS13 FNWN": {"spearman": -0.1}}
    two = {"STS13 FNWN": {"spearman": 0.3}}
    models = evaluated_models(
        [
            record("a", {"sts_dice": dice, "sts_sources": sources(one)}),
            record("b", {"sts_sources": sources(two)}),
        ]
    )
    fifths, by_source = partition_plots(models)
    (axes,) = fifths.draw(LIGHT).axes
    values = axes.lines[0].get_ydata()
    assert values[0] == 60
    assert math.isnan(values[1])
    assert axes.get_xticklabels()[0].get_text() == "0.00 to\n0.50"
    (axes,) = by_source.draw(LIGHT).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["STS12 MSRpar", "STS13 FNWN"]
    first, second = (line.get_xdata() for line in axes.lines)
    assert tuple(first) == (50, -10)
    assert math.isnan(second[0])
    assert second[1] == 30
    assert by_source.protocol == "As in the paper"


def sources(scores: dict[str, dict]) -> dict:
    return entry("sts", "By source", {"spearman_mean": 0.5}, sources=scores)


def test_no_plots_without_partitions() -> None:
    assert partition_plots(evaluated_models([record("a", {})])) == []
