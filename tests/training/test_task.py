from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.task_loss import Feature, TaskLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.training.task import Task, shuffling_seed, task_in_turn


def task_with(loss: TaskLoss, **changes: Any) -> Task:
    columns = {**toy.arrays(), **changes}
    return Task("t", loss, ArrayData({k: v for k, v in columns.items() if v is not None}))


@pytest.mark.parametrize(
    ("loss", "changes", "message"),
    [
        (ClassificationLoss(), {"premise": None}, "'premise' is missing"),
        (ClassificationLoss(), {"label": np.zeros((64, 1), np.int32)}, "'label' has rank 2"),
        (ClassificationLoss(), {"label": np.zeros(64)}, "'label' holds float64"),
        (ClassificationLoss(num_classes=2), {}, "'label' holds labels 0…2, the classes are 2"),
        (TeacherLoss(teacher_dim=5), {}, "'teacher' is 6 wide instead of 5"),
        (TeacherLoss(teacher_dim=6), {"sentence": np.zeros((64, 3))}, "'sentence' holds float64"),
    ],
)
def test_a_mismatch_is_named(loss: TaskLoss, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_with(loss, **changes).check_features()


@pytest.mark.parametrize(
    "change", [{"mixing_weight": 0.0}, {"mixing_weight": float("nan")}, {"batch_size": 0}]
)
def test_impossible_rates_and_batches_are_refused(change: dict) -> None:
    with pytest.raises(ValueError, match="positive mixing_weight and batch_size"):
        Task("t", ClassificationLoss(), ArrayData(toy.arrays()), **change)


def test_a_name_is_a_word() -> None:
    with pytest.raises(ValueError, match="not 'a/b'"):
        Task("a/b", ClassificationLoss(), ArrayData(toy.arrays()))


def test_rates_decide_how_often_a_task_is_drawn() -> None:
    tasks = toy.tasks(only=("talk", "nli", "teacher"))
    for task, rate in zip(tasks, (6.0, 3.0, 1.0), strict=True):
        task.mixing_weight = rate
    by_name = {task.name: task for task in tasks}
    drawn = [task_in_turn(by_name, order="drawn", seed=1, step=step) for step in range(2000)]
    shares = [drawn.count(task.name) / 2000 for task in tasks]
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.04)
    assert drawn[7:9] == [
        task_in_turn(by_name, order="drawn", seed=1, step=step) for step in (7, 8)
    ]


def test_a_cycle_is_exact() -> None:
    tasks = toy.tasks(only=("talk", "nli"))
    for task, rate in zip(tasks, (3.0, 2.0), strict=True):
        task.mixing_weight = rate
    by_name = {task.name: task for task in tasks}
    turns = [task_in_turn(by_name, order="cycle", seed=1, step=step) for step in range(3, 13)]
    assert turns == ["nli", "nli", "talk", "talk", "talk"] * 2


def test_tasks_and_seeds_shuffle_differently() -> None:
    seeds = {shuffling_seed(name, seed=seed) for name in ("a", "b", "ab") for seed in (0, 1)}
    assert len(seeds) == 6


def test_features_say_what_they_need() -> None:
    assert [str(Feature("a", *rest)) for rest in (("ids",), ("label", 3), ("vector", 5))] == [
        "a: integers [batch, length]",
        "a: integers [batch] in 0…2",
        "a: floats [batch, 5]",
    ]
    assert str(Feature("a", "vector")) == "a: floats [batch, width]"
