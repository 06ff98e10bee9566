from __future__ import annotations

from typing import Any

import pytest

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import Evaluated, evaluated_models
from use_st5.evaluation.report.score_table import ScoreGroup, cautions, protocol_notes, score_table
from use_st5.evaluation.report.section import Table
from use_st5.evaluation.sts.tasks import SECTIONS

SIMILARITY, ANGULAR = SECTIONS[0].scores
STS = SIMILARITY.order
GROUP = ScoreGroup("g", order=("b", "a"), average=("b", "a"))


def models(*scores: dict[str, float | None], **changes: Any) -> list[Evaluated]:
    """A model per argument, each task named as its score; changes go to the last model."""
    records = [
        record(
            f"model {number}",
            {name: entry("g", name.upper(), {"accuracy": value}) for name, value in given.items()},
        )
        for number, given in enumerate(scores)
    ]
    for task in records[-1].tasks.values():
        task.update(changes)
    return evaluated_models(records)


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


def bold(table: Table) -> list[list[bool]]:
    return [[cell.best for cell in row.cells] for row in table.rows]


def test_columns_are_in_the_order_of_the_paper_then_the_mean_then_others() -> None:
    table = score_table(models({"a": 0.5, "c": 0.1, "b": 0.7}), GROUP)
    assert [column.title for column in table.columns] == ["B", "A", "Avg.", "C"]
    assert texts(table) == [["70.00", "50.00", "60.00", "10.00"]]


def test_each_best_is_marked_and_gaps_stay_gaps() -> None:
    table = score_table(models({"a": 0.5, "b": 0.7}, {"a": 0.6}, {"a": None, "b": 0.7}), GROUP)
    assert texts(table) == [
        ["70.00", "50.00", "60.00"],
        ["–", "60.00", "–"],
        ["70.00", "undefined", "undefined"],
    ]
    assert bold(table) == [[True, False, False], [False, True, False], [True, False, False]]


def test_no_mean_where_no_model_has_one_of_its_tasks() -> None:
    table = score_table(models({"a": 0.5}), GROUP)
    assert [column.title for column in table.columns] == ["A"]


def test_no_table_without_tasks() -> None:
    assert score_table(models({"a": 0.5}), ScoreGroup("other")) is None


def test_the_caption_names_each_statistic_with_its_tasks() -> None:
    tasks = {
        "x": entry("g", "CoLA", {"matthews": 0.5}),
        "y": entry("g", "MRPC", {"accuracy": 0.5}),
        "z": entry("g", "QQP", {"accuracy": 0.5}),
    }
    table = score_table(evaluated_models([record("m", tasks)]), ScoreGroup("g"))
    assert table.caption == "CoLA: Matthews correlation × 100. MRPC, QQP: accuracy × 100."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "Another"}, "A: the models were measured by different protocols."),
        ({"options": {"k": 5}}, "A: the models were measured by different protocols."),
        ({"data": {"a": "00"}}, "A: the models were measured on different data files."),
    ],
)
def test_what_cannot_be_compared_is_said_and_not_marked(
    change: dict[str, Any], message: str
) -> None:
    given = models({"a": 0.5}, {"a": 0.6}, **change)
    table = score_table(given, ScoreGroup("g"))
    assert table.cautions == (message,)
    assert bold(table) == [[False], [False]]
    assert cautions(given[:1], ["a"]) == ()


def test_paths_of_the_data_may_differ() -> None:
    given = models({"a": 0.5}, {"a": 0.6})
    digest = next(iter(given[0].task("a")["data"].values()))
    given[1].task("a")["data"] = {"elsewhere/a.txt": digest}
    assert cautions(given, ["a"]) == ()


def test_one_note_for_tasks_of_one_protocol_with_the_options() -> None:
    tasks = {
        "x": entry("g", "X", {"f1": 0.5}, protocol="by cosine"),
        "y": entry("g", "Y", {"f1": 0.5}, protocol="by cosine"),
        "z": entry("g", "Z", {"f1": 0.5}, protocol="by cosine.") | {"options": {"k": 4}},
    }
    assert protocol_notes(tasks) == [("X, Y", "By cosine."), ("Z", "By cosine. Options: k = 4.")]


def test_the_papers_rows_stand_below_in_the_same_columns() -> None:
    tasks = {name: entry("sts", name, {"spearman_all": 0.5}) for name in STS}
    given = evaluated_models([record("m", tasks)])
    table = score_table(given, SIMILARITY)
    rows = {(row.label, row.detail): [cell.text for cell in row.cells] for row in table.rows}
    # Sentence-T5, Table 3.
    assert rows["ST5-Enc mean", "Ni et al. (2022), Table 3; fine-tuned on NLI"] == (
        ["77.37", "83.65", "80.41", "86.04", "81.70", "84.49", "79.79", "81.92"]
    )
    assert not any(cell.best for row in table.rows for cell in row.cells)
    assert score_table(given, SIMILARITY, published=False).rows[1:] == ()


def test_a_group_can_show_another_score_than_the_main_one() -> None:
    scores = {"spearman_all": 0.7, "pearson_angular_all": 0.8}
    tasks = {"stsb": entry("sts", "STS-B", scores)}
    tasks["sickr"] = entry("sts", "SICK-R", scores)
    table = score_table(evaluated_models([record("m", tasks)]), ANGULAR)
    assert texts(table)[0] == ["80.00"]
    assert table.rows[1].label == "USE_T"
    assert texts(table)[1] == ["78.2"]
