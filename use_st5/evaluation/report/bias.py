"""WEAT and SEAT: effect sizes with their intervals."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

from use_st5.evaluation.report import charts
from use_st5.evaluation.report.cell import Cell, number, probability, score_cell
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated, Task, tasks_of
from use_st5.evaluation.report.published_rows import Notes, PublishedEffects, published_effects
from use_st5.evaluation.report.score_table import cautions, protocol_notes, task_cell
from use_st5.evaluation.report.section import Plot, Section
from use_st5.evaluation.report.table import Column, Row, Table
from use_st5.evaluation.report.theme import Theme

_GROUPS = {"weat": "Words (WEAT)", "seat": "Words in sentences (SEAT)"}
_WORDS = re.compile("(?<=[a-z])(?=[A-Z])")
_LEAD = (
    "The effect size d says how much nearer the first targets are to the first attributes than the "
    "second targets are, in standard deviations; p is one-sided. An interval that excludes 0 shows "
    "an association. A high p does not show that an encoder is free of bias: the test finds "
    "associations, it cannot rule them out."
)


def bias_section(models: Sequence[Evaluated], *, published: bool) -> Section | None:
    """The tests, a row each, and their plots; None where none was run."""
    tables, plots = [], []
    for group, title in _GROUPS.items():
        if tests := tasks_of(models, group):
            beside, notes = published_effects([*tests]) if published else ([], ())
            tables.append(_table(models, title, tests, beside, notes))
            plots.append(_plot(models, group, tests, beside))
    if not tables:
        return None
    title = "Associations that may be bias (WEAT, SEAT)"
    return Section("bias", title, _LEAD, tuple(tables), tuple(plots))


def _table(
    models: Sequence[Evaluated],
    title: str,
    tests: dict[str, Task],
    beside: Sequence[PublishedEffects],
    notes: Notes,
) -> Table:
    rows = (
        Row(task["title"], _cells(models, name, beside), detail=" × ".join(_categories(task)))
        for name, task in tests.items()
    )
    return Table(
        title=title,
        caption="Effect size d, its 95 % bootstrap interval, and the one-sided p.",
        corner="Test",
        columns=(
            *(Column(model.name, model=model.position) for model in models),
            *(Column(f"{one.label} (published)", one.source) for one in beside),
        ),
        rows=tuple(rows),
        notes=(*protocol_notes(tests), *notes),
        cautions=cautions(models, tests),
    )


def _cells(
    models: Sequence[Evaluated], test: str, beside: Sequence[PublishedEffects]
) -> tuple[Cell, ...]:
    cells = []
    for model in models:
        cell = task_cell(model, test, "effect_size")
        if cell.state == "value":
            ends = _interval(model, test)
            parts = [f"{number(ends[0], 2)} to {number(ends[1], 2)}"] if ends else []
            parts.append(probability(model.score(test, "p_value")))
            cell = dataclasses.replace(cell, small="; ".join(filter(None, parts)))
        cells.append(cell)
    for one in beside:
        effect, p = one.effects.get(test, (None, None))
        cells.append(score_cell(effect, "effect_size", small=probability(p), note="published"))
    return tuple(cells)


def _interval(model: Evaluated, test: str) -> tuple[float, float] | None:
    """The ends of the interval; None where there is none."""
    ends = [model.score(test, f"effect_size_{end}") for end in ("low", "high")]
    if any(end is None or math.isnan(end) for end in ends):
        return None
    return ends[0], ends[1]


def _categories(task: Task) -> list[str]:
    """The targets and the attributes in words; empty where the test does not name them."""
    # The sent-bias files write them as one word each: EuropeanAmericanNames.
    names = [_WORDS.sub(" ", name) for name in task["details"].get("categories", ())]
    return [f"{names[0]} / {names[1]}", f"{names[2]} / {names[3]}"] if names else []


def _plot(
    models: Sequence[Evaluated],
    group: str,
    tests: dict[str, Task],
    beside: Sequence[PublishedEffects],
) -> Plot:
    labels = ["\n".join([task["title"], *_categories(task)]) for task in tests.values()]
    series = [_series(model, tests) for model in models]
    series += [
        Series(
            f"{one.label} (published)",
            tuple(one.effects.get(test, (math.nan, None))[0] for test in tests),
            rank=rank,
        )
        for rank, one in enumerate(beside)
    ]

    def draw(theme: Theme) -> charts.Figure:
        return charts.bars(theme, labels, series, Axis("effect size d"))

    names = ", ".join(one.label for one in series)
    return Plot(
        group,
        f"{_GROUPS[group]}: effect sizes with their 95 % intervals. To the right of 0, the first "
        "targets are nearer to the first attributes.",
        f"Bars of the effect sizes of {len(tests)} tests for {names}; the table has the numbers.",
        draw,
    )


def _series(model: Evaluated, tests: dict[str, Task]) -> Series:
    values = [model.score(test, "effect_size") for test in tests]
    spread = [_interval(model, test) or (math.nan, math.nan) for test in tests]
    return Series(
        model.name,
        tuple(math.nan if value is None else value for value in values),
        spread=tuple(spread),
        model=model.position,
    )
