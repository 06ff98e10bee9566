"""The loop alone: steps that only note that they were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

from tests.training import toy
from use_st5.training.training_loop import Metrics, TrainingLoop


class NotedSteps(TrainingLoop):
    """Notes which task was asked for, and its first batch."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.asked: list[tuple[str, int]] = []
        super().__init__(*arguments, **options)

    def _train(self, name: str, first: int) -> Metrics:
        self.asked.append((name, first))
        return {"loss": 1.0 / (1 + first)}


def loop(rates: tuple[float, float] = (3.0, 1.0), **options: Any) -> NotedSteps:
    tasks = toy.tasks(only=("nli", "teacher"))
    for task, rate in zip(tasks, rates, strict=True):
        task.rate = rate
    return NotedSteps(toy.ToyEncoder(), tasks, keras.optimizers.SGD(0.1), progress=False, **options)


def test_tasks_are_drawn_by_their_rates_and_see_each_batch_once() -> None:
    run = loop(steps_per_call=2)
    history = run.run(2000)
    assert history.step == 2000 == sum(history.task_steps.values())
    # Of 1,000 draws with a chance of 3/4: 750, standard deviation 14.
    assert abs(history.task_steps["nli"] / 2 - 750) < 60
    for name, steps in history.task_steps.items():
        assert [first for asked, first in run.asked if asked == name] == [*range(0, steps, 2)]


def test_the_draw_is_a_function_of_seed_and_step(tmp_path: Path) -> None:
    whole, first, rest = loop(), loop(folder=tmp_path), loop(folder=tmp_path)
    whole.run(400)
    first.run(150)
    rest.run(400)
    assert whole.asked == first.asked + rest.asked
    other = loop(seed=1)
    other.run(400)
    assert other.asked != whole.asked


def test_checkpoints_come_when_due_when_better_and_at_the_end(tmp_path: Path) -> None:
    scores = iter([0.5, 0.9, 0.4])
    run = loop(
        folder=tmp_path,
        evaluate=lambda: {"score": next(scores)},
        evaluate_every=20,
        checkpoint_every=30,
        keep_checkpoints=9,
    )
    history = run.run(60)
    assert (history.best_step, history.best_score) == (40, 0.9)
    assert [evaluation["step"] for evaluation in history.evaluations] == [20, 40, 60]
    assert run._checkpoints.steps() == [20, 30, 40, 60]  # better, due, better, due and the end


def test_a_callback_may_stop_it_between_two_calls() -> None:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            assert np.isfinite(logs["loss"])
            self.model.stop_training = batch >= 29

    assert loop(callbacks=[Stop()]).run(100).step == 30
