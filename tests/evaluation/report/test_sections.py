from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest

from tests.evaluation.report.records import entry, record
from use_st5.evaluation import report
from use_st5.evaluation.published.tables import published_tables
from use_st5.evaluation.registry import all_tasks, group_sections, groups
from use_st5.evaluation.report.evaluated import Evaluated, evaluated_models
from use_st5.evaluation.report.published_rows import MULTILINGUAL
from use_st5.evaluation.report.score_table import ScoreGroup
from use_st5.evaluation.report.section import Plot
from use_st5.evaluation.report.sections import (
    GroupSection,
    every_score,
    overview_section,
    report_sections,
)

SCORE_GROUPS = [group for section in group_sections() for group in section.scores]


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
    names = [section.name for section in report_sections(models, published=True)]
    assert names == ["overview", "sts", "senteval", "geometry", "group-0"]
    (alone,) = report_sections(evaluated_models([record("a", {})]), published=True)
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


def test_every_featured_row_is_published() -> None:
    rows = [row for table in published_tables() for row in table.rows]
    featured = {one for group in SCORE_GROUPS for one in group.featured} | {*MULTILINGUAL}
    for model, settings in featured:
        assert any(row.model == model and row.settings.startswith(settings) for row in rows), (
            f"no published row of {model}, {settings}"
        )


@pytest.mark.parametrize("group", SCORE_GROUPS, ids=lambda group: f"{group.group} {group.title}")
def test_published_scores_fit_the_columns(group: ScoreGroup) -> None:
    for benchmark in group.benchmarks:
        rows = [row for table in published_tables(benchmark) for row in table.rows]
        keys = {key for row in rows for key in row.scores}
        columns = {name.removesuffix(group.suffix) for name in group.order} | {"average"}
        assert not group.order or keys & columns


@pytest.mark.parametrize("group", SCORE_GROUPS, ids=lambda group: f"{group.group} {group.title}")
def test_averaged_tasks_come_first(group: ScoreGroup) -> None:
    assert group.order[: len(group.average)] == group.average


def test_every_task_has_its_place_and_no_place_waits_for_an_unknown_task() -> None:
    registered = {group: {task.name for task in tasks} for group, tasks in groups().items()}
    for group in SCORE_GROUPS:
        assert {*group.order, *group.apart} <= registered[group.group]
    shown = [group for section in group_sections() for group in section.titles]
    assert sorted(shown) == sorted(registered)


def test_reports_know_no_group_and_no_task_by_name() -> None:
    names = {*groups(), *all_tasks()}
    for path in Path(report.__file__).parent.glob("*.py"):
        constants = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not constants & names, path.name


def test_a_section_shows_what_its_group_declares() -> None:
    toys = GroupSection("toys", "Toys", "Read me.", scores=(ScoreGroup("toys", title="All"),))
    tasks = {"ball": entry("toys", "Ball", {"accuracy": 0.5})}
    section = toys.of(evaluated_models([record("a", tasks)]), published=True)
    assert (section.name, section.title, section.lead) == ("toys", "Toys", "Read me.")
    assert [table.title for table in section.tables] == ["All"]
    assert toys.titles == {"toys": "Toys"}
    assert toys.of(evaluated_models([record("a", {})]), published=True) is None
    plot = Plot("p", "", "", draw=lambda theme: None)
    drawn = dataclasses.replace(toys, more=lambda models, published: ((), [plot] * published))
    assert drawn.of(evaluated_models([record("a", {})]), published=True).plots == (plot,)


def test_what_is_no_score_of_a_task_comes_last() -> None:
    assert [section.name for section in group_sections()][-2:] == ["geometry", "bias"]
