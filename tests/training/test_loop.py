"""The loop alone: steps that only note that they were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.training import toy
from use_st5.training.loop import Metrics, TrainingLoop
from use_st5.training.task import steps_of_tasks


class NotedSteps(TrainingLoop):
    """Notes the task of each call, its first batch, and the number of batches."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.asked: list[tuple[str, int]] = []
        self.batches: list[tuple[str, int]] = []
        self.calls: list[int] = []
        super().__init__(*arguments, **options)

    def _train(self, name: str, first: int, steps: int) -> Metrics:
        self.asked.append((name, first))
        self.batches += [(name, batch) for batch in range(first, first + steps)]
        self.calls.append(steps)
        return {"loss": 1.0 / (1 + first)}


def loop(rates: tuple[float, float] = (3.0, 1.0), **options: Any) -> NotedSteps:
    tasks = toy.tasks(only=("nli", "teacher"))
    for task, rate in zip(tasks, rates, strict=True):
        task.mixing_weight = rate
    return NotedSteps(toy.ToyEncoder(), tasks, keras.optimizers.SGD(0.1), progress=False, **options)


def test_tasks_are_drawn_by_their_rates_and_see_each_batch_once() -> None:
    run = loop(steps_per_execution=2)
    history = run.run(2000)
    assert history.step == 2000 == sum(history.task_steps.values())
    # 1,000 draws with a probability of 3/4 have the mean 750 and the standard deviation 14.
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


def test_any_number_of_steps_is_made_and_continued_exactly(tmp_path: Path) -> None:
    """A call is shorter if the end, an evaluation or a checkpoint comes before its last step."""
    every = {"evaluate": lambda: {"score": 1.0}, "evaluate_every": 25, "checkpoint_every": 17}
    whole, short, rest = loop(), loop(folder=tmp_path, **every), loop(folder=tmp_path)
    whole.run(103)
    assert whole.calls == [10] * 10 + [3]
    assert short.run(44).step == 44
    assert short.calls == [10, 7, 3, 5, 5, 4, 6, 4]
    assert [each["step"] for each in short.history.evaluations] == [25, 44]
    rest.run(103)
    assert whole.batches == short.batches + rest.batches
    assert steps_of_tasks(
        whole.tasks, range(44, 103), order="drawn", seed=0, steps_per_turn=10
    ) == {name: len([b for b in rest.batches if b[0] == name]) for name in whole.tasks}


def test_tasks_take_turns_in_a_cycle_that_a_resumed_run_keeps(tmp_path: Path) -> None:
    """19 steps of one, then one of the other, whenever the run was cut off."""
    cycle = {"rates": (19.0, 1.0), "order": "cycle", "steps_per_execution": 1}
    whole, first, rest = (
        loop(**cycle),
        loop(folder=tmp_path, **cycle),
        loop(folder=tmp_path, **cycle),
    )
    whole.run(60)
    first.run(33)
    rest.run(60)
    assert whole.asked == first.asked + rest.asked
    names = [name for name, _ in whole.asked]
    assert names == (["nli"] * 19 + ["teacher"]) * 3
    assert [batch for name, batch in whole.asked if name == "teacher"] == [0, 1, 2]
    with pytest.raises(ValueError, match='order: begun with "cycle", now nothing'):
        loop(rates=(19.0, 1.0), folder=tmp_path, steps_per_execution=1).run(80)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"order": "cycle", "steps_per_execution": 10},
            "multiples of steps_per_execution.*3.0 for 'nli'",
        ),
        ({"order": "cycle", "steps_per_execution": 1, "rates": (1.5, 1.0)}, "numbers of steps"),
    ],
)
def test_turns_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loop(**options)


def test_checkpoints_come_when_due_when_better_and_at_the_end(tmp_path: Path) -> None:
    scores = iter([0.5, 0.9, 0.4])
    run = loop(
        folder=tmp_path,
        evaluate=lambda: {"score": next(scores)},
        evaluate_every=20,
        checkpoint_every=30,
    )
    saved: list[int] = []
    save = run._checkpoints.save

    def noted(step: int, *rest: Any, **options: Any) -> None:
        saved.append(step)
        save(step, *rest, **options)

    run._checkpoints.save = noted
    history = run.run(60)
    assert (history.best_step, history.best_score) == (40, 0.9)
    assert [evaluation["step"] for evaluation in history.evaluations] == [20, 40, 60]
    assert saved == [20, 30, 40, 60]  # better, due, better, due and the end
    assert run._checkpoints.steps() == [40, 60]


def test_a_callback_may_stop_it_between_two_calls() -> None:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            assert np.isfinite(logs["loss"])
            self.model.stop_training = batch >= 29

    assert loop(callbacks=[Stop()]).run(100).step == 30


def test_the_start_is_measured_too_and_may_be_the_best(tmp_path: Path) -> None:
    scores = iter([0.5, 0.4, 0.3])
    options = {"evaluate": lambda: {"score": next(scores)}, "evaluate_every": 10}
    run = loop(folder=tmp_path, evaluate_start=True, **options)
    run.encoder.table.embeddings.assign(run.encoder.table.embeddings * 2)
    before = run.encoder.get_weights()
    history = run.run(20)
    assert [each["step"] for each in history.evaluations] == [0, 10, 20]
    assert history.best_step == 0
    run.encoder.table.embeddings.assign(run.encoder.table.embeddings * 0)
    run.restore_best()
    for weight, expected in zip(run.encoder.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_a_run_that_has_waited_ends_and_does_not_begin_again(tmp_path: Path) -> None:
    scores = iter([0.5, 0.6, 0.4, 0.6, 0.9])  # An equal score is no improvement.
    options = {"evaluate": lambda: {"score": next(scores)}, "evaluate_every": 10, "patience": 2}
    assert loop(folder=tmp_path, **options).run(100).step == 40
    again = loop(folder=tmp_path, **options)
    assert (again.run(100).step, again.asked) == (40, [])
