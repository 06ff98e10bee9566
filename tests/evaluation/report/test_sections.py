from __future__ import annotations

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.registry import all_tasks, groups
from use_st5.evaluation.report import sections
from use_st5.evaluation.report.sections import every_score, overview_section, report_sections
from use_st5.evaluation.report.tables import Evaluated, evaluated_models


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


def test_a_dimension_that_is_not_known_is_no_number() -> None:
    unknown = record("b", {})
    unknown.model["dimension"] = None
    (table,) = overview_section(evaluated_models([record("a", {}), unknown])).tables
    assert [row.cells[0].text for row in table.rows] == ["512", "–"]


def test_sections_are_those_with_something_to_show_in_a_fixed_order() -> None:
    tasks = {
        "new": entry("clustering", "Clusters", {"v_measure": 0.4}),
        "geometry": entry("geometry", "Geometry", {"uniformity": -2.0}),
        "trec": entry("senteval", "TREC", {"accuracy": 0.9}),
        "sts12": entry("sts", "STS12", {"spearman_all": 0.5}),
    }
    models = evaluated_models([record("a", tasks)])
    names = [section.name for section in report_sections(models)]
    assert names == ["overview", "sts", "senteval", "geometry", "group-0"]
    (alone,) = report_sections(evaluated_models([record("a", {})]))
    assert alone.name == "overview"


def test_every_score_of_every_model_is_listed() -> None:
    models = evaluated_models(
        [
            record("a", {"mr": entry("senteval", "MR", {"accuracy": 0.5, "f1": 0.6})}),
            record("b", {"mr": entry("senteval", "MR", {"accuracy": 0.7, "auc": None})}),
        ]
    )
    (table,) = every_score(models)
    assert {row.detail: [cell.text for cell in row.cells] for row in table.rows} == {
        "accuracy × 100": ["50.00", "70.00"],
        "F1 × 100": ["60.00", "–"],
        "area under the ROC curve × 100": ["–", "undefined"],
    }


def test_every_group_has_a_title_and_no_place_waits_for_an_unknown_task() -> None:
    assert {*sections._TITLES} == {*groups()}
    named = {*sections._STS, *sections._TRANSFER, *sections._PROBING, *sections._BUCC}
    named |= {*sections._TRACKS, *sections._MONOLINGUAL}
    assert named | {task for means in sections._OVERVIEW.values() for task in means} <= {
        *all_tasks()
    }
