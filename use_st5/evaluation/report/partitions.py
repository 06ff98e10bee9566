"""The plots of STS by source and by the overlap of words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated
from use_st5.evaluation.report.section import Plot
from use_st5.evaluation.report.theme import Theme

_AXIS = "Spearman correlation × 100"


def partition_plots(models: Sequence[Evaluated]) -> list[Plot]:
    """The plots for which some model has what they show."""
    return [plot for plot in (_dice_plot(models), _source_plot(models)) if plot]


def hundredfold(value: float | None) -> float:
    """The value × 100; NaN, which draws nothing, where there is none."""
    return math.nan if value is None else value * 100


def _dice_plot(models: Sequence[Evaluated]) -> Plot | None:
    found = [(model, task) for model in models if (task := model.task("sts_dice"))]
    if not found:
        return None
    quintiles = {model.position: task["details"]["quintiles"] for model, task in found}
    series = [
        Series(
            model.name,
            tuple(range(1, len(quintiles[model.position]) + 1)),
            tuple(hundredfold(each["spearman"]) for each in quintiles[model.position]),
            model=model.position,
        )
        for model, _ in found
    ]
    ticks = {
        place: f"{each['dice_from']:.2f} to\n{each['dice_to']:.2f}"
        for place, each in enumerate(quintiles[found[0][0].position], start=1)
    }

    def draw(theme: Theme) -> charts.Figure:
        axis = Axis("Dice coefficient of the two sentences’ words", _AXIS)
        return charts.lines(theme, series, axis, ticks)

    return Plot(
        "sts_dice",
        f"{found[0][1]['title']}: from the fifth of the pairs that shares fewest words to the one "
        "that shares most.",
        f"Lines of the {_AXIS} over fifths of the pairs by Dice coefficient, for "
        f"{', '.join(one.label for one in series)}.",
        draw,
        found[0][1]["protocol"],
    )


def _source_plot(models: Sequence[Evaluated]) -> Plot | None:
    found = [(model, task) for model in models if (task := model.task("sts_sources"))]
    if not found:
        return None
    labels = [*dict.fromkeys(name for _, task in found for name in task["details"]["sources"])]
    series = [
        Series(
            model.name,
            tuple(
                hundredfold(task["details"]["sources"].get(name, {}).get("spearman"))
                for name in labels
            ),
            model=model.position,
        )
        for model, task in found
    ]

    def draw(theme: Theme) -> charts.Figure:
        return charts.dots(theme, labels, series, Axis(_AXIS))

    return Plot(
        "sts_sources",
        f"{found[0][1]['title']} of the sentences.",
        f"Dots of the {_AXIS} for {len(labels)} sources of sentences, for "
        f"{', '.join(one.label for one in series)}.",
        draw,
        found[0][1]["protocol"],
    )
