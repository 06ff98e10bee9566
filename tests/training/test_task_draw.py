from __future__ import annotations

import numpy as np

from tests.training import toy
from use_st5.training.task_draw import drawn_task, shuffling_seed


def test_rates_decide_how_often_a_task_is_drawn() -> None:
    tasks = toy.tasks(only=("talk", "nli", "teacher"))
    for task, rate in zip(tasks, (6.0, 3.0, 1.0), strict=True):
        task.rate = rate
    by_name = {task.name: task for task in tasks}
    drawn = [drawn_task(by_name, seed=1, step=step) for step in range(2000)]
    shares = [drawn.count(task.name) / 2000 for task in tasks]
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.04)
    assert drawn[7:9] == [drawn_task(by_name, seed=1, step=step) for step in (7, 8)]


def test_tasks_and_seeds_shuffle_differently() -> None:
    seeds = {shuffling_seed(name, seed=seed) for name in ("a", "b", "ab") for seed in (0, 1)}
    assert len(seeds) == 6
