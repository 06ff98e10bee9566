"""The first table: each model on one line."""

from __future__ import annotations

from collections.abc import Sequence

from use_st5.evaluation.report.cell import Cell
from use_st5.evaluation.report.evaluated import Evaluated
from use_st5.evaluation.report.score_groups import SCORE_GROUPS
from use_st5.evaluation.report.score_table import mean_column, model_rows
from use_st5.evaluation.report.section import Section
from use_st5.evaluation.report.table import Column, Table

_MEANS = {
    "sts": "STS",
    "senteval": "Transfer",
    "senteval_sklearn": "Transfer (scikit-learn)",
    "probing": "Probing",
    "probing_mlp": "Probing (hidden layer)",
    "bucc": "BUCC",
    "xsts": "XSTS",
}


def overview_section(models: Sequence[Evaluated]) -> Section:
    """What the models are, and their means over those tasks of the papers that all of them have."""
    heads = [Column("Dimension"), Column("Tasks")]
    columns = [
        [Cell(f"{model.record.model['dimension']:,}") for model in models],
        [Cell(f"{len(model.record.tasks):,}") for model in models],
    ]
    for name, title in _MEANS.items():
        wanted = SCORE_GROUPS[name].average
        shared = [task for task in wanted if all(model.task(task) for model in models)]
        if shared:
            titles = ", ".join(models[0].task(task)["title"] for task in shared)
            counted = "avg." if len(shared) == len(wanted) else f"{len(shared)} of {len(wanted)}"
            heads.append(Column(f"{title} {counted}", f"Mean of {titles}."))
            columns.append(mean_column(models, shared))
    table = Table(
        caption="Means × 100 over the tasks of the papers’ tables that every model here has; “2 of "
        "7” is a mean of two of seven, which the papers’ averages cannot be compared with.",
        corner="Model",
        columns=tuple(heads),
        rows=tuple(model_rows(models, columns)),
    )
    return Section("overview", "At a glance", "", (table,))
