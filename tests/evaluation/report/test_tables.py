from __future__ import annotations

import math
from typing import Any

import pytest

from tests.evaluation.report.records import entry, record
from use_st5._page import Cell
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.registry import all_tasks, groups
from use_st5.evaluation.report import tables
from use_st5.evaluation.report.tables import (
    MISSING,
    UNDEFINED,
    Table,
    cautions,
    check_names,
    describe,
    mark_best,
    report_sections,
    score_cell,
)


def test_each_model_has_a_name_of_its_own() -> None:
    with pytest.raises(ValueError, match="one model or more, received none"):
        check_names([])
    with pytest.raises(ValueError, match=r"received a b more than once\. "):
        check_names([record("a b", {}), record("c", {}), record("a\n b", {})])


@pytest.mark.parametrize(
    ("value", "statistic", "text"),
    [
        (0.66004, "spearman_all", "66.00"),
        (-0.1, "matthews", "−10.00"),
        (0.0, "accuracy", "0.00"),
        (-0.00001, "pearson_mean", "0.00"),
        (1.381, "effect_size", "1.38"),
        (-0.372, "effect_size", "−0.37"),
        (0.2514, "alignment_above_4", "0.251"),
        (-1.9, "uniformity", "−1.900"),
        (12.346, "perplexity", "12.35"),
        (None, "spearman_all", MISSING),
        (math.nan, "spearman_all", UNDEFINED),
    ],
)
def test_scores_are_shown_in_their_unit(value: float | None, statistic: str, text: str) -> None:
    assert score_cell(value, statistic).text == text


def test_the_aggregation_is_named() -> None:
    assert describe("spearman_all").startswith("Spearman correlation × 100, aggregation “all”")
    assert "weighted" in describe("pearson_wmean")
    assert "angular" in describe("pearson_angular_all")
    assert "“all”" in describe("pearson_angular_all")
    assert describe("f1_dev") == "F1 × 100 on the validation data that chose its threshold"
    assert describe("accuracy") == "accuracy × 100"
    assert describe("accuracy_roles") == "accuracy × 100, roles"
    assert describe("effect_size") == "effect size"


def marked(values: list[float | None], *, higher: bool = True) -> list[bool]:
    return [
        cell.best for cell in mark_best([score_cell(v, "accuracy") for v in values], higher=higher)
    ]


def test_the_best_is_marked_and_all_that_look_like_it() -> None:
    assert marked([0.5, 0.7, None]) == [False, True, False]
    assert marked([0.5, 0.7, math.nan], higher=False) == [True, False, False]
    assert marked([0.70001, 0.70004, 0.6]) == [True, True, False]
    assert marked([0.5, None]) == [False, False], "one alone is not the best"
    assert mark_best([Cell("512"), Cell("384")]) == [Cell("512"), Cell("384")]


def models(*scores: dict[str, float | None], **changes: Any) -> list[EvaluationRecord]:
    """Makes a model per argument, with tasks of BUCC; `changes` apply to the last model's tasks."""
    records = [
        record(
            f"model {number}",
            {
                f"bucc_{name}-en": entry("bucc", name, {"accuracy": value})
                for name, value in given.items()
            },
        )
        for number, given in enumerate(scores)
    ]
    for task in records[-1].tasks.values():
        task.update(changes)
    return records


def the_table(records: list[EvaluationRecord], group: str = "bucc") -> Table:
    (section,) = (each for each in report_sections(records) if each.name == group)
    return section.tables[0]


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in cells] for _, cells in table.rows]


def bold(table: Table) -> list[list[bool]]:
    return [[cell.best for cell in cells] for _, cells in table.rows]


ALL = {"fr": 0.5, "xx": 0.1, "de": 0.7, "zh": 0.5, "ru": 0.3}


def test_columns_are_in_the_order_of_the_paper_then_the_mean_then_others() -> None:
    table = the_table(models(ALL))
    assert table.heads == ("de", "fr", "ru", "zh", "Avg.", "xx")
    assert texts(table) == [["70.00", "50.00", "30.00", "50.00", "50.00", "10.00"]]


def test_each_best_is_marked_and_gaps_stay_gaps() -> None:
    table = the_table(models(ALL, {"fr": 0.6}, {**ALL, "fr": None}))
    assert [row[:2] for row in texts(table)] == [
        ["70.00", "50.00"],
        ["–", "60.00"],
        ["70.00", "undefined"],
    ]
    assert [row[4] for row in texts(table)] == ["50.00", "–", "undefined"]
    assert [row[1] for row in bold(table)] == [False, True, False]
    assert [row[0] for row in bold(table)] == [True, False, True]


def test_no_mean_where_no_model_has_one_of_its_tasks() -> None:
    assert the_table(models({"de": 0.5})).heads == ("de",)


def test_the_caption_names_each_statistic_with_its_tasks() -> None:
    tasks = {
        "x": entry("sentglue", "CoLA", {"matthews": 0.5}),
        "y": entry("sentglue", "MRPC", {"accuracy": 0.5}),
        "z": entry("sentglue", "QQP", {"accuracy": 0.5}),
    }
    table = the_table([record("m", tasks)], "sentglue")
    assert table.caption == "CoLA: Matthews correlation × 100. MRPC, QQP: accuracy × 100."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "Another"}, "de: the models were measured by different protocols."),
        ({"options": {"k": 5}}, "de: the models were measured by different protocols."),
        ({"data": {"a": "00"}}, "de: the models were measured on different data files."),
    ],
)
def test_what_cannot_be_compared_is_said_and_not_marked(
    change: dict[str, Any], message: str
) -> None:
    given = models({"de": 0.5}, {"de": 0.6}, **change)
    table = the_table(given)
    assert table.cautions == (message,)
    assert bold(table) == [[False], [False]]
    assert cautions(given[:1], ["bucc_de-en"]) == ()


def test_paths_of_the_data_may_differ() -> None:
    given = models({"de": 0.5}, {"de": 0.6})
    digest = next(iter(given[0].tasks["bucc_de-en"]["data"].values()))
    given[1].tasks["bucc_de-en"]["data"] = {"remote/a.txt": digest}
    assert cautions(given, ["bucc_de-en"]) == ()


def test_one_note_for_tasks_of_one_protocol_with_the_options() -> None:
    tasks = {
        "x": entry("pairs", "X", {"auc": 0.5}, protocol="by cosine"),
        "y": entry("pairs", "Y", {"auc": 0.5}, protocol="by cosine"),
        "z": entry("pairs", "Z", {"auc": 0.5}, protocol="by cosine.") | {"options": {"k": 4}},
    }
    notes = the_table([record("m", tasks)], "pairs").notes
    assert notes == ("X, Y: By cosine.", "Z: By cosine. Options: k = 4.")


def test_means_are_over_what_every_model_has() -> None:
    one = {
        name: entry("sts", name, {"spearman_all": x})
        for name, x in (("sts12", 0.5), ("sts13", 0.7), ("stsb", 0.1))
    }
    two = {
        name: entry("sts", name, {"spearman_all": x})
        for name, x in (("sts12", 0.6), ("sts13", 0.9), ("mr", 0.8))
    }
    table = the_table([record("a", one), record("b", two)], "overview")
    assert table.heads == ("Dimension", "Tasks", "Semantic textual similarity, 2 of 7")
    assert texts(table) == [["512", "3", "60.00"], ["512", "3", "75.00"]]
    assert [row[2] for row in bold(table)] == [False, True]
    unknown = record("c", {})
    unknown.model["dimension"] = None
    assert texts(the_table([record("a", one), unknown], "overview"))[1] == ["–", "0"]


def test_sections_are_in_a_fixed_order_and_unknown_groups_last() -> None:
    tasks = {
        "new": entry("clustering", "Clusters", {"v_measure": 0.4}),
        "geometry": entry("geometry", "Geometry", {"uniformity": -2.0}),
        "trec": entry("senteval", "TREC", {"accuracy": 0.9}),
        "sts12": entry("sts", "STS12", {"spearman_all": 0.5}),
    }
    names = [section.name for section in report_sections([record("a", tasks)])]
    assert names == ["overview", "sts", "senteval", "geometry", "clustering", "every-score"]


def test_every_score_of_every_model_is_listed() -> None:
    given = [
        record("a", {"mr": entry("senteval", "MR", {"accuracy": 0.5, "f1": 0.6})}),
        record("b", {"mr": entry("senteval", "MR", {"accuracy": 0.7, "auc": None})}),
    ]
    assert {
        name: [c.text for c in cells] for name, cells in the_table(given, "every-score").rows
    } == {
        "MR: accuracy × 100": ["50.00", "70.00"],
        "MR: F1 × 100": ["60.00", "–"],
        "MR: area under the ROC curve × 100": ["–", "undefined"],
    }


def test_effects_stand_with_interval_and_p() -> None:
    scores = {
        "effect_size": 1.381,
        "p_value": 1e-5,
        "effect_size_low": -0.204,
        "effect_size_high": 1.5,
    }
    names = ["Flowers", "Insects", "Pleasant", "Unpleasant"]
    first = {"weat1": entry("weat", "WEAT1", scores, categories=names)}
    second = {"weat1": entry("weat", "WEAT1", {"effect_size": 0.5, "p_value": 0.0345})}
    third = {"weat1": entry("weat", "WEAT1", {"effect_size": 0.5, "p_value": None})}
    given = [record("a", first), record("b", {}), record("c", second), record("d", third)]
    table = the_table(given, "weat")
    assert table.heads == ("a", "b", "c", "d")
    ((name, cells),) = table.rows
    assert name == "WEAT1 (Flowers / Insects × Pleasant / Unpleasant)"
    assert [cell.text for cell in cells] == [
        "1.38 (−0.20 to 1.50; p < 0.001)",
        "–",
        "0.50 (p = 0.035)",
        "0.50 (p undefined)",
    ]


def test_of_alignment_and_uniformity_less_is_better() -> None:
    given = [
        record(
            name, {"geometry": entry("geometry", "G", {"uniformity": u, "alignment_above_4": a})}
        )
        for name, u, a in (("a", -2.0, 0.3), ("b", -1.0, 0.2), ("c", None, 0.4))
    ]
    table = the_table(given, "geometry")
    assert table.heads == ("uniformity", "alignment above 4")
    assert texts(table)[2] == ["undefined", "0.400"]
    assert bold(table) == [[True, False], [False, True], [False, False]]


def test_minimal_pairs_have_a_column_for_each_kind() -> None:
    given = [
        record(name, {"minimal_pairs": entry("minimal_pairs", "M", scores)})
        for name, scores in (
            ("a", {"accuracy": 0.4, "accuracy_roles": 0.25}),
            ("b", {"accuracy": 0.5, "accuracy_roles": 0.125}),
        )
    ]
    table = the_table(given, "minimal_pairs")
    assert table.heads == ("accuracy", "accuracy roles")
    assert texts(table) == [["40.00", "25.00"], ["50.00", "12.50"]]
    assert bold(table) == [[False, True], [True, False]]
    assert table.caption == "Accuracy × 100."


def test_every_group_has_a_title_and_no_place_waits_for_an_unknown_task() -> None:
    assert {*tables._GROUPS} == {*groups()}
    averaged = {name for group in tables._GROUPS.values() for name in group.average}
    assert averaged <= {*all_tasks()}
