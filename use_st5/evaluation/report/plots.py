"""The plots of a report: what each shows, and how it is drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from use_st5 import _svg
from use_st5._svg import Axis, Series
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.differences import Difference

_JOINED = re.compile("(?<=[a-z])(?=[A-Z])")


class Plot(NamedTuple):
    """A plot: what it shows, and the SVG."""

    caption: str
    svg: str


def score_of(record: EvaluationRecord, task: str, name: str | None = None) -> float | None:
    """A score, by default the task's main one, in its natural unit.

    None if it was not measured, NaN if it is undefined.
    """
    entry = record.tasks.get(task)
    if entry is None or (key := name or entry["main"]) not in entry["scores"]:
        return None
    value = entry["scores"][key]
    return math.nan if value is None else float(value)


def name_of(record: EvaluationRecord) -> str:
    """The model's name on one line."""
    return " ".join(str(record.model["name"]).split())


def difference_plot(
    records: Sequence[EvaluationRecord],
    baseline: str,
    found: Mapping[str, Mapping[str, Difference]],
) -> Plot:
    """Differences to a baseline with their intervals, a row for each task.

    `found`: title of a task → name of a model → its difference.
    """
    nothing = Difference(math.nan)
    series = []
    for place, name in enumerate(map(name_of, records)):
        row = [found[title].get(name, nothing) for title in found]
        if not all(math.isnan(each.value) for each in row):
            values = tuple(100 * each.value for each in row)
            spread = tuple((100 * each.low, 100 * each.high) for each in row)
            series.append(Series(name, values, spread=spread, place=place))
    caption = (
        f"Difference to {baseline} by task, with 95 % intervals. To the right of 0 a model is "
        "better."
    )
    return Plot(caption, _svg.dots([*found], series, Axis("difference × 100"), alt=caption))


def geometry_plot(records: Sequence[EvaluationRecord]) -> Plot | None:
    """A point for each model, as in Figure 4 of the Sentence-T5 paper; None without both scores."""
    series = []
    for place, record in enumerate(records):
        x, y = (score_of(record, "geometry", n) for n in ("uniformity", "alignment_above_4"))
        if x is not None and y is not None and math.isfinite(x + y):
            series.append(Series(name_of(record), (x,), (y,), place=place))
    axis = Axis("uniformity (less: more even)", "alignment, positives > 4 (less: closer)")
    if not series:
        return None
    caption = "Alignment against uniformity. The lower left corner is best."
    return Plot(caption, _svg.scatter(series, axis, alt=caption))


def bias_plot(records: Sequence[EvaluationRecord], tests: dict[str, dict[str, Any]]) -> Plot:
    """Bars of effect sizes with their intervals, a row for each test."""
    labels = ["\n".join([task["title"], *categories(task)]) for task in tests.values()]
    series = []
    for place, record in enumerate(records):
        values, low, high = (
            [math.nan if (x := score_of(record, test, name)) is None else x for test in tests]
            for name in ("effect_size", "effect_size_low", "effect_size_high")
        )
        spread = tuple(zip(low, high, strict=True))
        series.append(Series(name_of(record), tuple(values), spread=spread, place=place))
    caption = (
        "Effect sizes with their 95 % intervals. To the right of 0, the first targets are nearer "
        "to the first attributes."
    )
    return Plot(caption, _svg.bars(labels, series, Axis("effect size d"), alt=caption))


def categories(task: dict[str, Any]) -> list[str]:
    """The targets and the attributes in words; empty if the test does not name them."""
    # The sent-bias files write them as one word each: EuropeanAmericanNames.
    names = [_JOINED.sub(" ", name) for name in task["details"].get("categories", ())]
    return [f"{names[0]} / {names[1]}", f"{names[2]} / {names[3]}"] if names else []
