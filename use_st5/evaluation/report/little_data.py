"""Accuracy against the number of training examples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from use_st5.evaluation.report import charts
from use_st5.evaluation.report.cell import Cell, mark_best, score_cell
from use_st5.evaluation.report.charts import Axis, Series
from use_st5.evaluation.report.evaluated import Evaluated, tasks_of
from use_st5.evaluation.report.partitions import hundredfold
from use_st5.evaluation.report.score_table import cautions, model_rows, protocol_notes
from use_st5.evaluation.report.section import Plot, Section
from use_st5.evaluation.report.table import Column, Row, Table
from use_st5.evaluation.report.theme import Theme

_TASK = "little_data_sst"
_LEAD = (
    "What the embedding is worth where training examples are few: the accuracy of a classifier on "
    "the frozen embeddings against the number of examples that it learns from (the Universal "
    "Sentence Encoder paper's experiment)."
)


def little_data_section(models: Sequence[Evaluated]) -> Section | None:
    """The curve and its table; None where no model has it."""
    tasks = {name: task for name, task in tasks_of(models, "little_data").items() if name == _TASK}
    if not tasks:
        return None
    curves = {
        model.position: {point["examples"]: point for point in task["details"]["curve"]}
        for model in models
        if (task := model.task(_TASK))
    }
    sizes = sorted({size for curve in curves.values() for size in curve})
    warnings = cautions(models, [_TASK])
    table = Table(
        caption="Accuracy × 100 by number of training examples; ± is the standard deviation over "
        "draws of the examples.",
        corner="Model",
        columns=tuple(Column(f"{size:,}") for size in sizes),
        rows=tuple(_rows(models, curves, sizes, bool(warnings))),
        notes=tuple(protocol_notes(tasks)),
        cautions=warnings,
    )
    return Section(
        "little_data", "Learning from little data", _LEAD, (table,), (_plot(models, curves),)
    )


def _rows(
    models: Sequence[Evaluated], curves: dict[int, dict[int, dict]], sizes: list[int], apart: bool
) -> list[Row]:
    columns = []
    for size in sizes:
        cells = [_cell(curves.get(model.position, {}).get(size)) for model in models]
        columns.append(cells if apart else mark_best(cells))
    return model_rows(models, columns)


def _cell(point: dict | None) -> Cell:
    if point is None:
        return score_cell(None, "accuracy")
    accuracy, std = point["accuracy"], point.get("std")
    draws = point.get("draws") or 1
    value = math.nan if accuracy is None else accuracy
    small = f"± {std * 100:.2f}" if std is not None and draws > 1 else ""
    return score_cell(value, "accuracy", small=small, note=f"mean of {draws} draws")


def _plot(models: Sequence[Evaluated], curves: dict[int, dict[int, dict]]) -> Plot:
    series = [_series(model, curves[model.position]) for model in models if model.task(_TASK)]
    sizes = sorted({x for one in series for x in one.x})

    def draw(theme: Theme) -> charts.Figure:
        axis = Axis("training examples", "accuracy × 100", log=True)
        return charts.lines(theme, series, axis, _ticks(sizes))

    return Plot(
        "little_data",
        "Accuracy on SST by number of training examples; vertical lines are ± one standard "
        "deviation over draws.",
        f"Lines of accuracy over {len(sizes)} numbers of training examples for "
        f"{', '.join(one.label for one in series)}; the table has the numbers.",
        draw,
    )


def _series(model: Evaluated, curve: dict[int, dict]) -> Series:
    points = [curve[size] for size in sorted(curve)]
    y = [hundredfold(point["accuracy"]) for point in points]
    stds = [hundredfold(point.get("std") or 0.0) for point in points]
    return Series(
        model.name,
        tuple(point["examples"] for point in points),
        tuple(y),
        spread=tuple((mean - std, mean + std) for mean, std in zip(y, stds, strict=True)),
        model=model.position,
    )


def _ticks(sizes: list[float]) -> dict[float, str]:
    """Names for the sizes, without those too near to the one before to be read."""
    ticks: dict[float, str] = {}
    for size in sizes:
        if not ticks or size / [*ticks][-1] > 1.5:
            ticks[size] = f"{size / 1000:.3g}k" if size >= 1000 else f"{size:g}"
    return ticks
