from __future__ import annotations

import math
from typing import Any

import pytest

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.tables import (
    MISSING,
    UNDEFINED,
    Cell,
    Evaluated,
    Table,
    cautions,
    describe,
    evaluated_models,
    mark_best,
    number,
    probability,
    protocol_notes,
    score_cell,
    score_table,
    tasks_of,
)


def test_a_score_is_a_number_or_undefined_or_missing() -> None:
    (model,) = evaluated_models(
        [record("a", {"mr": entry("senteval", "MR", {"accuracy": 0.8, "f1": None})})]
    )
    assert model.score("mr") == 0.8
    assert math.isnan(model.score("mr", "f1"))
    assert model.score("mr", "auc") is None
    assert model.score("cr") is None


def test_a_mean_needs_every_task() -> None:
    tasks = {
        name: entry("senteval", name, {"accuracy": value})
        for name, value in (("mr", 0.8), ("cr", 0.6), ("trec", None))
    }
    (model,) = evaluated_models([record("a", tasks)])
    assert model.mean(["mr", "cr"]) == pytest.approx(0.7)
    assert model.mean(["mr", "subj"]) is None
    assert math.isnan(model.mean(["mr", "trec"]))
    assert model.mean([]) is None


def test_tasks_of_a_group_are_those_of_all_models_in_order() -> None:
    models = evaluated_models(
        [
            record("a", {"mr": entry("senteval", "MR", {"accuracy": 0.8})}),
            record(
                "b",
                {
                    "cr": entry("senteval", "CR", {"accuracy": 0.8}),
                    "sts12": entry("sts", "STS12", {"spearman_all": 0.8}),
                    "mr": entry("senteval", "MR", {"accuracy": 0.7}),
                },
            ),
        ]
    )
    assert [*tasks_of(models, "senteval")] == ["mr", "cr"]


def test_no_records_are_an_error() -> None:
    with pytest.raises(ValueError, match="one model or more, received none"):
        evaluated_models([])


def test_two_models_of_one_name_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"received a b more than once\. "):
        evaluated_models([record("a b", {}), record("c", {}), record("a\n b", {})])


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


def test_missing_and_undefined_are_no_zero_and_differ() -> None:
    missing, undefined = score_cell(None, "accuracy"), score_cell(math.nan, "accuracy")
    assert (missing.state, undefined.state) == ("missing", "undefined")
    assert missing.value is None
    assert undefined.value is None
    assert score_cell(0.0, "accuracy").state == "value"


def test_the_aggregation_is_named() -> None:
    assert describe("spearman_all").startswith("Spearman correlation × 100, aggregation “all”")
    assert "weighted" in describe("pearson_wmean")
    assert "angular" in describe("pearson_angular_all")
    assert "“all”" in describe("pearson_angular_all")
    assert describe("f1_dev") == "F1 × 100 on the development gold that chose its threshold"
    assert describe("accuracy") == "accuracy × 100"
    assert describe("effect_size") == "effect size"


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0345, "p = 0.035"), (1e-7, "p < 0.001"), (1.0, "p = 1.000"), (None, "")],
)
def test_p_can_be_read(p: float | None, text: str) -> None:
    assert probability(p) == text


def test_an_undefined_p_says_so() -> None:
    assert probability(math.nan) == "p undefined"


def marked(values: list[float | None], *, higher: bool = True) -> list[bool]:
    return [
        cell.best for cell in mark_best([score_cell(v, "accuracy") for v in values], higher=higher)
    ]


def test_the_best_is_marked_and_all_that_look_like_it() -> None:
    assert marked([0.5, 0.7, None]) == [False, True, False]
    assert marked([0.5, 0.7, math.nan], higher=False) == [True, False, False]
    assert marked([0.70001, 0.70004, 0.6]) == [True, True, False]


def test_one_number_alone_is_not_the_best() -> None:
    assert marked([0.5, None]) == [False, False]
    assert mark_best([Cell("512"), Cell("384")]) == [Cell("512"), Cell("384")]


def test_numbers_have_a_true_minus_and_no_minus_before_zero() -> None:
    assert number(-0.004, 2) == "0.00"
    assert number(-1.0, 1) == "−1.0"


ORDER: dict[str, Any] = {"order": ("b", "a"), "average": ("b", "a")}


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
    table = score_table(models({"a": 0.5, "c": 0.1, "b": 0.7}), "g", **ORDER)
    assert [column.title for column in table.columns] == ["B", "A", "Avg.", "C"]
    assert texts(table) == [["70.00", "50.00", "60.00", "10.00"]]


def test_each_best_is_marked_and_gaps_stay_gaps() -> None:
    table = score_table(
        models({"a": 0.5, "b": 0.7}, {"a": 0.6}, {"a": None, "b": 0.7}), "g", **ORDER
    )
    assert texts(table) == [
        ["70.00", "50.00", "60.00"],
        ["–", "60.00", "–"],
        ["70.00", "undefined", "undefined"],
    ]
    assert bold(table) == [[True, False, False], [False, True, False], [True, False, False]]


def test_no_mean_where_no_model_has_one_of_its_tasks() -> None:
    table = score_table(models({"a": 0.5}), "g", **ORDER)
    assert [column.title for column in table.columns] == ["A"]


def test_no_table_without_tasks() -> None:
    assert score_table(models({"a": 0.5}), "other") is None


def test_the_caption_names_each_statistic_with_its_tasks() -> None:
    tasks = {
        "x": entry("g", "CoLA", {"matthews": 0.5}),
        "y": entry("g", "MRPC", {"accuracy": 0.5}),
        "z": entry("g", "QQP", {"accuracy": 0.5}),
    }
    table = score_table(evaluated_models([record("m", tasks)]), "g")
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
    table = score_table(given, "g")
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


def test_a_group_can_show_another_score_than_the_main_one() -> None:
    scores = {"spearman_all": 0.7, "pearson_angular_all": 0.8}
    tasks = {"stsb": entry("sts", "STS-B", scores)}
    tasks["sickr"] = entry("sts", "SICK-R", scores)
    table = score_table(
        evaluated_models([record("m", tasks)]),
        "sts",
        order=("stsb",),
        only=True,
        score="pearson_angular_all",
    )
    assert texts(table) == [["80.00"]]
