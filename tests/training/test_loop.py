"""The loop: with steps that only note that they were made, and with real ones."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.training.loop import Metrics, TrainingLoop
from use_st5.training.optimizers import Adam
from use_st5.training.task import Task, steps_of_tasks
from use_st5.training.tensorflow_step import TensorFlowLoop


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
    given = {"steps_per_execution": 10, **options}
    return toy.loop(NotedSteps, toy.ToyEncoder(), tasks, keras.optimizers.SGD(0.1), **given)


def test_tasks_are_drawn_by_their_rates_and_see_each_batch_once() -> None:
    run = loop(steps_per_execution=2)
    history = run.run(2000)
    assert history.step == 2000 == sum(history.task_steps.values())
    # 1,000 draws with a probability of 3/4 have the mean 750 and the standard deviation 14.
    assert abs(history.task_steps["nli"] / 2 - 750) < 60
    for name, steps in history.task_steps.items():
        assert [first for asked, first in run.asked if asked == name] == [*range(0, steps, 2)]


def test_any_number_of_steps_is_made_and_continued_exactly(tmp_path: Path) -> None:
    """A call is shorter if the end or that of an epoch (64 rows, 16 a step) comes before."""
    every = {"evaluate": lambda: {"score": 1.0}, "evaluation_steps": 25}
    whole, short = loop(), loop(folder=tmp_path, evaluate_epochs=True, **every)
    rest = loop(folder=tmp_path)
    whole.run(103)
    assert whole.calls == [10] * 10 + [3]
    assert short.run(44).step == 44
    assert short.calls == [10] * 4 + [4]
    assert [each["step"] for each in short.history.evaluations] == [10, 20, 30, 40, 44]
    rest.run(103)
    assert whole.batches == short.batches + rest.batches
    assert steps_of_tasks(
        whole.tasks, range(44, 103), order="drawn", seed=0, steps_per_turn=10
    ) == {name: len([b for b in rest.batches if b[0] == name]) for name in whole.tasks}


def test_tasks_take_turns_in_a_cycle_that_a_resumed_run_keeps(tmp_path: Path) -> None:
    """19 steps of one, then one of the other, whenever the run was cut off."""
    cycle = {"rates": (19.0, 1.0), "task_order": "cycle", "steps_per_execution": 1}
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
    with pytest.raises(ValueError, match=r"nli: mixing_weight 3.0 must be a multiple"):
        loop(task_order="cycle")


def test_a_callback_may_stop_it_between_two_calls() -> None:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            assert np.isfinite(logs["loss"])
            self.model.stop_training = batch >= 29

    assert loop(callbacks=[Stop()]).run(100).step == 30


def test_a_run_that_has_waited_ends_and_does_not_begin_again(tmp_path: Path) -> None:
    scores = iter([0.5, 0.6, 0.4, 0.6, 0.9])  # An equal score is no improvement.
    options = {"evaluate": lambda: {"score": next(scores)}, "evaluation_steps": 10}
    options["early_stopping_patience"] = 2
    assert loop(folder=tmp_path, **options).run(100).step == 40
    again = loop(folder=tmp_path, **options)
    assert (again.run(100).step, again.asked) == (40, [])


def trainer_of(*names: str, **options: Any) -> TensorFlowLoop:
    """A small trainer without noise."""
    keras.utils.set_random_seed(options.pop("initial", 5))
    tasks = options.pop("tasks", None) or toy.tasks(options.pop("batch_size", 16), only=names)
    optimizer = options.pop("optimizer", None) or keras.optimizers.Adam(1e-2)
    encoder = toy.ToyEncoder(options.pop("dropout", 0.0))
    return toy.loop(TensorFlowLoop, encoder, tasks, optimizer, **options)


def weights_of(trainer: TensorFlowLoop) -> list[np.ndarray]:
    layers = [trainer.encoder, *(task.loss for task in trainer.tasks.values())]
    return [variable.numpy() for layer in layers for variable in layer.trainable_variables]


def assert_same(a: list[np.ndarray], b: list[np.ndarray], atol: float = 0.0) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=0.0, atol=atol)


def table_size(trainer: TensorFlowLoop) -> float:
    return float(np.abs(trainer.encoder.table.embeddings.numpy()).sum())


def test_every_task_is_drawn_and_learns() -> None:
    trainer = trainer_of("talk", "nli", "teacher", steps_per_execution=1)
    history = trainer.run(60)
    assert history.step == sum(history.task_steps.values()) == 60
    for name in trainer.tasks:
        losses = [record["loss"] for record in history.records if record["task"] == name]
        assert len(losses) == history.task_steps[name] > 8
        assert np.mean(losses[-3:]) < np.mean(losses[:3])
        assert trainer._train_steps[name]._steps.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("options", [{}, {"micro_batch_size": 8}])
def test_sparse_gradients_of_a_table_teach_what_dense_ones_teach(options: dict[str, Any]) -> None:
    """Rows of the table are repeated within a batch; clipping uses the norm of their sums."""
    runs = []
    for kind in (keras.optimizers.Adam, Adam):
        given = {"optimizer": kind(1e-2, global_clipnorm=0.05), **options}
        runs.append(trainer_of("nli", **given))
        runs[-1].run(8)
    sparse = [step._takes_sparse for step in runs[1]._train_steps.values()]
    assert sparse == [True]
    assert_same(*[weights_of(run) for run in runs], atol=1e-5)


def test_batches_of_like_lengths_teach_what_whole_ones_teach() -> None:
    """The same rows, not cut to their bucket, make the same steps."""
    columns = {name: toy.arrays()[name] for name in ("premise", "hypothesis", "label")}
    columns["hypothesis"] = columns["hypothesis"][:, :3]
    cut = ArrayData(columns, buckets=(2, 3, 5))
    whole = ArrayData(columns, buckets=(2, 3, 5))
    whole.buckets = (5, 5, 5)  # the order of `cut`, at full width
    runs = []
    for data in (cut, whole):
        keras.utils.set_random_seed(0)
        task = Task("nli", toy.losses()["nli"], data, batch_size=8)
        runs.append(trainer_of(tasks=[task], micro_batch_size=4))
        runs[-1].run(8)
    assert_same(*[weights_of(run) for run in runs], atol=1e-6)
    widths = {cut.batch(step, 8, 0)["premise"].shape[1] for step in range(8)}
    assert len(widths) > 1


def test_tasks_may_share_a_loss_and_its_head(tmp_path: Path) -> None:
    def make() -> TensorFlowLoop:
        (task,) = toy.tasks(only=("nli",))
        wide = {n: np.pad(v, [(0, 0), (0, 2)][: v.ndim]) for n, v in toy.arrays().items()}
        long = dataclasses.replace(task, name="long", data=ArrayData(wide))
        return trainer_of(tasks=[task, long], folder=tmp_path)

    trainer = make()
    history = trainer.run(16)
    assert min(history.task_steps.values()) > 0
    assert len(trainer.optimizer._trainable_variables) == 3 + 4  # encoder and one head
    again = make()
    again.run(16)
    assert_same(weights_of(trainer), weights_of(again))


@pytest.mark.parametrize("name", [pytest.param("text", marks=pytest.mark.end_to_end), "nli"])
def test_xla_compiles_the_whole_step_and_gives_the_same_losses(name: str) -> None:
    losses = [
        [record["loss"] for record in trainer_of(name, jit_compile=jit).run(4).records]
        for jit in (False, True)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_stopped_run_continues_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    def make(folder: Path | None, initial: int = 5) -> TensorFlowLoop:
        schedule = keras.optimizers.schedules.PolynomialDecay(1e-2, 12)
        trainer = trainer_of(
            "nli",
            "teacher",
            initial=initial,
            dropout=0.3,
            optimizer=keras.optimizers.Adam(schedule),
            folder=folder,
            evaluate=lambda: {"size": table_size(trainer)},
            evaluation_steps=6,
        )
        return trainer

    whole = make(None)
    whole.run(12)
    make(tmp_path).run(8)
    rest = make(tmp_path, initial=99)
    rest.run(12)
    assert [record["step"] for record in rest.history.records] == [10, 12]
    assert_same(weights_of(whole), weights_of(rest))
    evaluations = [e for e in rest.history.evaluations if e["step"] != 8]  # first run's end
    assert evaluations == whole.history.evaluations
    assert rest.history.task_steps == whole.history.task_steps
    again = make(tmp_path).run(12)
    assert again.records == []
    assert again.step == 12


def test_a_run_leaves_no_pipeline_to_the_garbage_collector() -> None:
    """It could end it in the pipeline's own thread, which would wait for itself without end."""

    def broken(batch: int, logs: Any) -> None:
        raise RuntimeError("broken")

    callbacks = [keras.callbacks.LambdaCallback(on_train_batch_end=broken)]

    def pipelines() -> int:
        return sum(type(each).__name__ == "OwnedIterator" for each in gc.get_objects())

    gc.collect()
    before = pipelines()
    gc.disable()
    try:
        with contextlib.suppress(RuntimeError):
            trainer_of("nli", callbacks=callbacks).run(4)
        assert pipelines() == before
    finally:
        gc.enable()


def test_other_settings_do_not_continue_a_run(tmp_path: Path) -> None:
    trainer_of("nli", folder=tmp_path).run(2)
    tasks = toy.tasks(8, only=("nli",))
    other = trainer_of(tasks=tasks, folder=tmp_path, seed=1, optimizer=keras.optimizers.SGD(0.5))
    with pytest.raises(ValueError, match="begun with other settings") as raised:
        other.run(4)
    text = str(raised.value)
    assert "\n  tasks.nli.batch_size: begun with 16, now 8" in text
    assert "\n  seed: begun with 0, now 1" in text
    assert '\n  optimizer.class_name: begun with "Adam", now "SGD"' in text
    assert "encoder" not in text


def test_tasks_in_another_order_do_not_continue_a_run(tmp_path: Path) -> None:
    trainer_of("talk", "nli", folder=tmp_path).run(2)
    tasks = toy.tasks(only=("talk", "nli"))[::-1]
    with pytest.raises(ValueError, match="the order of the tasks"):
        trainer_of(tasks=tasks, folder=tmp_path).run(4)


def scored(scores: list[float], folder: Path, **options: Any) -> TensorFlowLoop:
    """A trainer whose evaluations, every two steps, have these scores."""
    values = iter(scores)
    evaluate = {"evaluate": lambda: {"other": 1.0, "score": next(values)}, "monitor": "score"}
    return trainer_of("nli", folder=folder, evaluation_steps=2, **evaluate, **options)


def test_the_best_checkpoint_is_kept_and_restored(tmp_path: Path) -> None:
    scores, sizes = [0.1, 0.9, math.nan, 0.3, 0.9, 0.2], []
    trainer = scored(scores, tmp_path, keep_best=3)
    note = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: sizes.append(table_size(trainer))
    )
    trainer.callbacks.append(note)
    history = trainer.run(12)
    assert (history.best_step, history.best_score) == (4, 0.9)
    assert trainer._checkpoints.steps() == [4, 8, 10, 12]
    assert table_size(trainer) == sizes[5] != sizes[1]
    for place, evaluation in enumerate((1, 4, 3)):
        trainer.restore_best(place)
        assert table_size(trainer) == sizes[evaluation]
    with pytest.raises(ValueError, match="a place below 3"):
        trainer.restore_best(3)
    assert scored(scores, tmp_path / "one").run(12).best_step == 4
    kept = [name[-2:] for name in sorted(p.name for p in (tmp_path / "one").glob("checkpoint-*"))]
    assert kept == ["04", "12"]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_start_may_be_the_best(mode: str, tmp_path: Path) -> None:
    sign = {"max": 1, "min": -1}[mode]
    scores = [sign * score for score in (0.5, 0.4, 0.3)]
    trainer = scored(scores, tmp_path, evaluate_start=True, mode=mode)
    before = trainer.encoder.get_weights()
    history = trainer.run(4)
    assert [each["step"] for each in history.evaluations] == [0, 2, 4]
    assert history.best_step == 0
    trainer.restore_best()
    assert_same(trainer.encoder.get_weights(), before)


def test_a_run_goes_on_without_its_best_checkpoint(tmp_path: Path) -> None:
    """The message for a damaged checkpoint advises to remove it."""
    scored([0.1, 0.9, 0.3], tmp_path).run(6)
    shutil.rmtree(tmp_path / "checkpoint-000000004")
    trainer = scored([0.2, 0.4], tmp_path)
    assert (trainer.run(6).best_step, trainer.history.best_score) == (6, 0.3)
    trainer.restore_best()
    assert trainer.run(10).best_step == 10


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    columns = toy.arrays()
    columns["teacher"][3] = math.nan
    task = dataclasses.replace(toy.tasks(64, only=("teacher",))[0], data=ArrayData(columns))
    trainer = trainer_of(tasks=[task], folder=tmp_path)
    with pytest.raises(FloatingPointError, match="nan of task 'teacher' in steps 1 to 2"):
        trainer.run(2)
    assert not [*tmp_path.glob("*checkpoint*")]


def test_weights_that_are_not_finite_are_not_kept(tmp_path: Path) -> None:
    sgd = keras.optimizers.SGD(float("inf"))
    trainer = trainer_of("nli", folder=tmp_path, optimizer=sgd, steps_per_execution=1)
    with pytest.raises(FloatingPointError, match="kernel is not finite after step 1"):
        trainer.run(1)
    assert not [*tmp_path.glob("*checkpoint*")]


class Recorder(keras.callbacks.Callback):
    """Writes down which of its methods are called, with which number and logs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Any, dict]] = []
        for name in ("train", "epoch", "train_batch"):
            for when in ("begin", "end"):
                setattr(self, f"on_{name}_{when}", partial(self._note, f"{name}_{when}"))

    def _note(self, name: str, *given: Any, **logs: dict) -> None:
        *number, values = [*given, *logs.values()]
        self.calls.append((name, number[0] if number else None, values or {}))


def test_keras_callbacks_are_called_in_order() -> None:
    recorder = Recorder()
    options = {"evaluate": lambda: {"score": 0.5}, "evaluation_steps": 4}
    trainer = trainer_of("nli", callbacks=[recorder], **options)
    trainer.run(6)
    assert [(name, number) for name, number, _ in recorder.calls] == [
        ("train_begin", None),
        ("epoch_begin", 0),
        ("train_batch_begin", 0),
        ("train_batch_end", 1),
        ("train_batch_begin", 2),
        ("train_batch_end", 3),
        ("epoch_end", 0),
        ("epoch_begin", 1),
        ("train_batch_begin", 4),
        ("train_batch_end", 5),
        ("epoch_end", 1),
        ("train_end", None),
    ]
    assert recorder.model is trainer.encoder
    assert recorder.calls[3][2].keys() == {"loss", "nli/loss", "nli/accuracy"}
    assert recorder.calls[6][2]["score"] == 0.5


def test_a_measurement_is_a_line_with_losses_and_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = {"evaluate": lambda: {"score": 0.5}, "evaluation_steps": 4, "evaluate_start": True}
    trainer_of("nli", progress=True, **options).run(8)
    lines = [line.strip() for line in capsys.readouterr().err.splitlines() if "score" in line]
    assert lines[0] == "step 0  score 0.5000 (best)"  # No loss and no speed are known yet.
    for line, step in zip(lines[1:], (4, 8), strict=True):
        known = rf"step {step}  score 0\.5000  losses: nli \d\.\d{{4}}  "
        assert re.fullmatch(known + r"[\d.e+]+ steps/s, 0:\d\d:\d\d left", line)


@pytest.mark.process
def test_two_processes_do_not_train_into_one_folder(
    tmp_path: Path, written_elsewhere: Callable[..., int]
) -> None:
    trainer = trainer_of("nli", folder=tmp_path)
    written_elsewhere(tmp_path, inside=True)
    with pytest.raises(BlockingIOError, match="is being written by process"):
        trainer.run(2)
    assert trainer.history.step == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": keras.optimizers.SGD(loss_scale_factor=8.0)}, "neither scale the loss"),
        ({"monitor": "c", "evaluate": lambda: {"a": 1.0}}, "expected one of .'a'., received 'c'"),
    ],
)
def test_impossible_settings_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trainer_of("nli", **options).run(2)
