"""Alignment against uniformity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from use_st5.evaluation.report import charts
from use_st5.evaluation.report.cell import mark_best
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated, tasks_of
from use_st5.evaluation.report.score_table import (
    cautions,
    model_rows,
    protocol_notes,
    task_cell,
)
from use_st5.evaluation.report.section import Plot, Section
from use_st5.evaluation.report.table import Column, Table
from use_st5.evaluation.report.theme import Theme

_COLUMNS = {
    "alignment_above_4": "Alignment, positives > 4 (ST5)",
    "alignment_from_4": "Alignment, positives ≥ 4 (SimCSE)",
    "uniformity": "Uniformity",
}
# The positives of the Sentence-T5 paper's figure.
_SHOWN = "alignment_above_4"


def geometry_section(models: Sequence[Evaluated]) -> Section | None:
    """Both as a table and as a point per model; None where no model has them."""
    tasks = tasks_of(models, "geometry")
    if "geometry" not in tasks:
        return None
    warnings = cautions(models, ["geometry"])
    columns = []
    for score in _COLUMNS:
        cells = [task_cell(model, "geometry", score) for model in models]
        columns.append(cells if warnings else mark_best(cells, higher=False))
    table = Table(
        caption="Alignment and uniformity; of both, less is better.",
        corner="Model",
        columns=tuple(Column(title) for title in _COLUMNS.values()),
        rows=tuple(model_rows(models, columns)),
        notes=tuple(protocol_notes(tasks)),
        cautions=warnings,
    )
    lead = (
        "Alignment is the mean squared distance of pairs that mean the same; uniformity says how "
        "evenly all sentences spread over the sphere (Wang and Isola, 2020). A good encoder is "
        "low in both."
    )
    return Section("geometry", "Alignment and uniformity", lead, (table,), tuple(_plots(models)))


def _plots(models: Sequence[Evaluated]) -> list[Plot]:
    points = [(m, m.score("geometry", "uniformity"), m.score("geometry", _SHOWN)) for m in models]
    series = [
        Series(model.name, (x,), (y,), model=model.position)
        for model, x, y in points
        if x is not None and y is not None and math.isfinite(x + y)
    ]
    if not series:
        return []

    def draw(theme: Theme) -> charts.Figure:
        axis = Axis("uniformity (less: more even)", "alignment, positives > 4 (less: closer)")
        return charts.scatter(theme, series, axis)

    alt = "; ".join(f"{s.label}: uniformity {s.x[0]:.2f}, alignment {s.y[0]:.2f}" for s in series)
    return [Plot("geometry", "The lower left corner is best.", f"A point per model. {alt}.", draw)]
