"""The first table: each model on one line."""

from __future__ import annotations

from collections.abc import Sequence

from use_st5.evaluation.report.cell import Cell
from use_st5.evaluation.report.evaluated import Evaluated
from use_st5.evaluation.report.score_groups import SCORE_GROUPS
from use_st5.evaluation.report.score_table import average_column, model_rows
from use_st5.evaluation.report.section import Section
from use_st5.evaluation.report.table import Column, Table

_AVERAGES = {
    "sts": "STS avg.",
    "senteval": "Transfer avg.",
    "senteval_sklearn": "Transfer avg. (scikit-learn)",
    "probing": "Probing avg.",
    "probing_mlp": "Probing avg. (hidden layer)",
    "bucc": "BUCC avg.",
    "xsts": "XSTS avg.",
}


def overview_section(models: Sequence[Evaluated]) -> Section:
    """What the models are, and the means of the papers' tables where all of a table is there."""
    heads = [Column("Dimension"), Column("Tasks")]
    columns = [
        [Cell(f"{model.record.model['dimension']:,}") for model in models],
        [Cell(f"{len(model.record.tasks):,}") for model in models],
    ]
    for group, title in _AVERAGES.items():
        if SCORE_GROUPS[group].averaged(models):
            heads.append(Column(title, f"Mean of {len(SCORE_GROUPS[group].average)} tasks."))
            columns.append(average_column(models, SCORE_GROUPS[group]))
    table = Table(
        caption="Means are shown where a model has all of their tasks.",
        corner="Model",
        columns=tuple(heads),
        rows=tuple(model_rows(models, columns)),
    )
    return Section("overview", "At a glance", "", (table,))
