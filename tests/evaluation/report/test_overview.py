from __future__ import annotations

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import Evaluated, evaluated_models
from use_st5.evaluation.report.overview import overview_section


def models(*scores: dict[str, float]) -> list[Evaluated]:
    return evaluated_models(
        record(
            f"m{place}",
            {
                name: entry("sts", name.upper(), {"spearman_all": value})
                for name, value in given.items()
            },
        )
        for place, given in enumerate(scores)
    )


def test_means_are_over_what_every_model_has() -> None:
    section = overview_section(
        models({"sts12": 0.5, "sts13": 0.7, "stsb": 0.1}, {"sts12": 0.6, "sts13": 0.9, "mr": 0.8})
    )
    (table,) = section.tables
    assert [column.title for column in table.columns] == ["Dimension", "Tasks", "STS 2 of 7"]
    assert table.columns[2].note == "Mean of STS12, STS13."
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["512", "3", "60.00"],
        ["512", "3", "75.00"],
    ]
    assert [row.cells[2].best for row in table.rows] == [False, True]


def test_a_mean_of_all_tasks_is_the_papers_average() -> None:
    names = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
    (table,) = overview_section(models(dict.fromkeys(names, 0.5))).tables
    assert table.columns[2].title == "STS avg."


def test_no_mean_without_a_task_that_all_have() -> None:
    (table,) = overview_section(models({"sts12": 0.5}, {"sts13": 0.5})).tables
    assert [column.title for column in table.columns] == ["Dimension", "Tasks"]
