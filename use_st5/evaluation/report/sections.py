"""What a report holds, in its order."""

from __future__ import annotations

from collections.abc import Sequence

from use_st5.evaluation.report.bias import bias_section
from use_st5.evaluation.report.cell import describe
from use_st5.evaluation.report.evaluated import Evaluated, tasks_of
from use_st5.evaluation.report.geometry import geometry_section
from use_st5.evaluation.report.little_data import little_data_section
from use_st5.evaluation.report.overview import overview_section
from use_st5.evaluation.report.partitions import partition_plots
from use_st5.evaluation.report.retrieval import tatoeba_plots, tatoeba_tables
from use_st5.evaluation.report.score_group import ScoreGroup
from use_st5.evaluation.report.score_groups import SCORE_GROUPS, SHOWN_OTHERWISE
from use_st5.evaluation.report.score_table import score_table, task_cell
from use_st5.evaluation.report.section import Plot, Section
from use_st5.evaluation.report.table import Column, Row, Table

# Group → title of its section, and what a reader should know before its numbers.
_SCORED = {
    "sts": (
        "Semantic textual similarity",
        "How well the similarity of two embeddings follows the one that people see. Correlations "
        "of different aggregations cannot be compared; each table names its own.",
    ),
    "senteval": (
        "Transfer (SentEval)",
        "How well a small classifier on the frozen embeddings does a task that the encoder was not "
        "trained for.",
    ),
    "probing": (
        "Probing (SentEval)",
        "Which properties of a sentence can be read off its embedding.",
    ),
    "sentglue": ("SentGLUE", "GLUE’s tasks with a classifier on the frozen embeddings."),
    "pairs": (
        "Pair classification",
        "How well the similarity of two embeddings tells related pairs from others.",
    ),
    "tatoeba": (
        "Finding translations (Tatoeba)",
        "How often the nearest sentence of the other language is the translation.",
    ),
    "bucc": (
        "Mining translations (BUCC)",
        "How many of the translations in two texts are found, and how many of the found are "
        "translations.",
    ),
    "multilingual_sts": (
        "Similarity in other languages",
        "Semantic textual similarity within and across languages.",
    ),
}
# The others' titles where every score is listed.
_TITLES = {
    "senteval_sklearn": "Transfer (SentEval, scikit-learn)",
    "probing_mlp": "Probing (SentEval, one hidden layer)",
    "little_data": "Learning from little data",
    "geometry": "Alignment and uniformity",
    "weat": "WEAT",
    "seat": "SEAT",
}


def report_sections(models: Sequence[Evaluated], *, published: bool) -> list[Section]:
    """The parts of the report for which some model has what they show."""

    def scored(group: str, *tables: Table | None, plots: Sequence[Plot] = ()) -> Section | None:
        found = tuple(table for table in tables if table)
        title, lead = _SCORED[group]
        return Section(group, title, lead, found, tuple(plots)) if found or plots else None

    def table(name: str) -> Table | None:
        return score_table(models, SCORE_GROUPS[name], published=published)

    sections = [
        overview_section(models),
        scored("sts", table("sts"), table("sts_angular"), plots=partition_plots(models)),
        scored("senteval", table("senteval"), table("senteval_sklearn")),
        scored("probing", table("probing"), table("probing_mlp")),
        *(scored(group, table(group)) for group in ("sentglue", "pairs")),
        little_data_section(models),
        scored(
            "tatoeba",
            *tatoeba_tables(models, published=published),
            plots=tatoeba_plots(models),
        ),
        scored("bucc", table("bucc")),
        scored(
            "multilingual_sts", table("xsts"), table("monolingual_sts"), table("translated_sts")
        ),
        geometry_section(models),
        bias_section(models, published=published),
        *_others(models),
    ]
    return [section for section in sections if section]


def _others(models: Sequence[Evaluated]) -> list[Section]:
    """Groups that this version does not know, each as a plain table."""
    known = {*SHOWN_OTHERWISE, *(group.group for group in SCORE_GROUPS.values())}
    groups = dict.fromkeys(
        task["group"] for model in models for task in model.record.tasks.values()
    )
    return [
        Section(
            f"group-{place}",
            group,
            "Scores of a group that this version of use_st5 has no table for.",
            (score_table(models, ScoreGroup(group)),),
        )
        for place, group in enumerate(group for group in groups if group not in known)
    ]


def every_score(models: Sequence[Evaluated]) -> list[Table]:
    """All scores of all tasks, a table per group with a row per score."""
    groups = dict.fromkeys(
        task["group"] for model in models for task in model.record.tasks.values()
    )
    tables = []
    for group in groups:
        rows = []
        for name, task in tasks_of(models, group).items():
            found = [t for model in models if (t := model.task(name))]
            for score in dict.fromkeys(score for t in found for score in t["scores"]):
                cells = tuple(task_cell(model, name, score) for model in models)
                rows.append(Row(task["title"], cells, detail=describe(score)))
        columns = tuple(Column(model.name, model=model.position) for model in models)
        tables.append(Table("", "Task", columns, tuple(rows), title=_title(group), long=True))
    return tables


def _title(group: str) -> str:
    return _SCORED[group][0] if group in _SCORED else _TITLES.get(group, group)
