"""The plots of a report: what each shows, and how it is drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import Axis, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CORRELATION = "Spearman correlation × 100"
_JOINED = re.compile("(?<=[a-z])(?=[A-Z])")


class Plot(NamedTuple):
    """A plot: the name of its file without ".png", what it shows, and what draws it."""

    name: str
    caption: str
    draw: Callable[[], Figure]


def score_of(record: EvaluationRecord, task: str, name: str | None = None) -> float | None:
    """A score in its natural unit; None where it was not measured, NaN where it is undefined.

    Args:
        record: Of a model.
        task: Name of a task.
        name: Name of the score; None: the task's main one.
    """
    found = record.tasks.get(task)
    if found is None or (key := name or found["main"]) not in found["scores"]:
        return None
    value = found["scores"][key]
    return math.nan if value is None else float(value)


def _named(record: EvaluationRecord) -> str:
    return " ".join(str(record.model["name"]).split())


def _percent(value: float | None) -> float:
    return math.nan if value is None else 100 * value


def dice_plot(records: Sequence[EvaluationRecord]) -> Plot | None:
    """Lines of correlation over fifths of STS-B by shared words; None where no model has them."""
    found = {
        place: record.tasks["sts_dice"]["details"]["quintiles"]
        for place, record in enumerate(records)
        if "sts_dice" in record.tasks
    }
    if not found:
        return None
    series = [
        Series(
            _named(records[place]),
            tuple(range(1, len(fifths) + 1)),
            tuple(_percent(each["spearman"]) for each in fifths),
            model=place,
        )
        for place, fifths in found.items()
    ]
    ticks: dict[float, str] = {
        place: f"{each['dice_from']:.2f} to\n{each['dice_to']:.2f}"
        for place, each in enumerate(next(iter(found.values())), start=1)
    }
    axis = Axis("Dice coefficient of the two sentences' words", _CORRELATION)
    return Plot(
        "sts_dice",
        "STS-B from the fifth of the pairs that shares fewest words to the one that shares most.",
        lambda: charts.lines(series, axis, ticks),
    )


def source_plot(records: Sequence[EvaluationRecord]) -> Plot | None:
    """A row of dots for each source of STS12 to STS16; None where no model has them."""
    found = {
        place: record.tasks["sts_sources"]["details"]["sources"]
        for place, record in enumerate(records)
        if "sts_sources" in record.tasks
    }
    if not found:
        return None
    labels = [*dict.fromkeys(name for sources in found.values() for name in sources)]
    series = [
        Series(
            _named(records[place]),
            tuple(_percent(sources.get(name, {}).get("spearman")) for name in labels),
            model=place,
        )
        for place, sources in found.items()
    ]
    return Plot(
        "sts_sources",
        "STS12 to STS16 by the source of the sentences.",
        lambda: charts.dots(labels, series, Axis(_CORRELATION)),
    )


def geometry_plot(records: Sequence[EvaluationRecord]) -> Plot | None:
    """A point for each model, as in Figure 4 of the Sentence-T5 paper; None without both scores."""
    series = []
    for place, record in enumerate(records):
        x, y = (score_of(record, "geometry", n) for n in ("uniformity", "alignment_above_4"))
        if x is not None and y is not None and math.isfinite(x + y):
            series.append(Series(_named(record), (x,), (y,), model=place))
    axis = Axis("uniformity (less: more even)", "alignment, positives > 4 (less: closer)")
    return (
        Plot(
            "geometry",
            "The lower left corner is best.",
            lambda: charts.scatter(series, axis),
        )
        if series
        else None
    )


def bias_plot(
    records: Sequence[EvaluationRecord], group: str, tests: dict[str, dict[str, Any]]
) -> Plot:
    """Bars of effect sizes with their intervals, a row for each test."""
    labels = ["\n".join([task["title"], *categories(task)]) for task in tests.values()]
    series = []
    for place, record in enumerate(records):
        values, spread = [], []
        for test in tests:
            names = ("effect_size", "effect_size_low", "effect_size_high")
            value, *ends = (score_of(record, test, name) for name in names)
            values.append(math.nan if value is None else value)
            low, high = (math.nan if end is None else end for end in ends)
            spread.append((low, high))
        series.append(Series(_named(record), tuple(values), spread=tuple(spread), model=place))
    return Plot(
        group,
        "Effect sizes with their 95 % intervals. To the right of 0, the first targets are nearer "
        "to the first attributes.",
        lambda: charts.bars(labels, series, Axis("effect size d")),
    )


def categories(task: dict[str, Any]) -> list[str]:
    """The targets and the attributes in words; empty where the test does not name them."""
    # The sent-bias files write them as one word each: EuropeanAmericanNames.
    names = [_JOINED.sub(" ", name) for name in task["details"].get("categories", ())]
    return [f"{names[0]} / {names[1]}", f"{names[2]} / {names[3]}"] if names else []
