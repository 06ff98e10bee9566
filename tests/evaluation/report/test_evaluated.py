from __future__ import annotations

import math

import pytest

from tests.evaluation.report.records import entry, record
from use_st5.evaluation.report.evaluated import evaluated_models, tasks_of


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
