"""The history of a training run, and what a run shows: lines, bars, TensorBoard's files, curves."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import rich.console
import rich.progress

from use_st5 import plots
from use_st5.io.files import as_written, open_local
from use_st5.io.progress import progress_bars


@dataclasses.dataclass
class History:
    """Progress, measurements and the best score of a run.

    Attributes:
        step: Updates made.
        task_steps: Updates made per task, by name.
        evaluations: `{"step": …, metric: …}` of each evaluation.
        best_step: Step of the best evaluation, None before the first.
        best_score: The monitored metric of the best evaluation.
        records: `{"step": …, "task": …, "loss": …, metric: …}` of each call from the host, as
            means over its steps; only of this process, because they are not in checkpoints.
    """

    step: int = 0
    task_steps: dict[str, int] = dataclasses.field(default_factory=dict)
    evaluations: list[dict[str, int | float]] = dataclasses.field(default_factory=list)
    best_step: int | None = None
    best_score: float | None = None
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def add(self, task: str, steps: int, values: Mapping[str, float]) -> None:
        """Counts the steps of a call from the host, and keeps the means over them."""
        self.step += steps
        self.task_steps[task] += steps
        self.records.append({"step": self.step, "task": task, **values})

    def improve(self, metrics: dict[str, float], *, monitor: str | None, mode: str) -> bool:
        """Notes the current step's score, `monitor` or the first, if it is best; NaN never is."""
        if monitor is None and metrics:
            monitor = next(iter(metrics))
        if monitor not in metrics:
            raise ValueError(f"monitor: expected one of {sorted(metrics)}, received {monitor!r}.")
        score = metrics[monitor]
        if math.isnan(score):
            return False
        sign = {"max": 1.0, "min": -1.0}[mode]
        if self.best_score is not None and sign * score <= sign * self.best_score:
            return False
        self.best_step, self.best_score = self.step, score
        return True

    def ranked_steps(self, *, monitor: str | None, mode: str) -> list[int]:
        """The steps of the evaluations, the best first; NaN is left out."""
        sign = {"max": -1.0, "min": 1.0}[mode]
        scores = ((e[monitor or [*e][1]], int(e["step"])) for e in self.evaluations if len(e) > 1)
        known = [(sign * score, step) for score, step in scores if not math.isnan(score)]
        return [step for _, step in sorted(known)]

    def has_waited(self, patience: int | None) -> bool:
        """Whether the last `patience` evaluations, if that is a number, brought no better score."""
        best = -1 if self.best_step is None else self.best_step
        later = [each for each in self.evaluations if each["step"] > best]
        return patience is not None and len(later) >= patience

    def to_state(self) -> dict[str, Any]:
        """The values that a checkpoint keeps, as JSON values."""
        state = dataclasses.asdict(self)
        del state["records"]
        return state


class Reporter:
    """Shows a run on the terminal and passes its numbers to a writer.

    On a terminal it shows a bar. Into a file or a pipe it writes a line at each evaluation, and one
    every ten seconds, like `progress_lines`.
    """

    def __init__(self, writer: TensorBoardWriter | None, *, progress: bool) -> None:
        self.console = rich.console.Console(stderr=True, quiet=not progress)
        self._progress = progress
        self.writer = writer
        self.losses: dict[str, float] = {}

    @contextlib.contextmanager
    def showing(self, step: int, steps: int) -> Iterator[None]:
        """Shows a run that is at `step` of `steps`; at its end, writes the buffered numbers."""
        columns = (
            "{task.description}",
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            "{task.fields[losses]}",
            "{task.fields[speed]}",
            rich.progress.TimeRemainingColumn(),
        )
        self._began, self._first, self._steps = time.monotonic(), step, steps
        console, lines = self.console, self._progress
        hidden = not console.is_terminal
        try:
            with progress_bars(*columns, console=console, disable=hidden, lines=lines) as self.bar:
                self.row = self.bar.add_task("training", True, steps, step, losses="", speed="")
                yield
        finally:
            if self.writer is not None:
                self.writer.flush()

    def step(self, step: int, task: str, values: dict[str, float], learning_rate: float) -> None:
        """Shows the means over the steps of one call from the host, which ends at `step`."""
        self.losses[task] = values["loss"]
        speed, _ = self._speed(step)
        self.bar.update(self.row, completed=step, losses=_shown(self.losses), speed=speed)
        scalars = {f"{task}/{name}": value for name, value in values.items()}
        self._write(step, {**scalars, "learning_rate": learning_rate})

    def evaluation(self, step: int, metrics: dict[str, float], best: bool) -> None:
        """Shows the metrics of an evaluation."""
        parts = [f"step {step}", _shown(metrics) + " (best)" * best]
        if self.losses:
            parts.append(f"losses: {_shown(self.losses)}")
        if step > self._first:
            speed, seconds = self._speed(step)
            parts.append(f"{speed}, {datetime.timedelta(seconds=round(seconds))} left")
        self.console.print("  ".join(parts), highlight=False, soft_wrap=True)
        self._write(step, {f"validation/{name}": value for name, value in metrics.items()})

    def _speed(self, step: int) -> tuple[str, float]:
        """Steps per second of this process, evaluations included, and the seconds that remain."""
        speed = (step - self._first) / max(time.monotonic() - self._began, 1e-9)
        return f"{speed:.3g} steps/s", max(0, self._steps - step) / speed

    def _write(self, step: int, scalars: dict[str, float]) -> None:
        if self.writer is not None:
            self.writer.write(step, scalars)


def _shown(values: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in values.items())


class TensorBoardWriter:
    """Writes scalars into a folder where TensorBoard finds them."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        import tensorflow as tf  # Only here: a run under JAX does not need it.

        self._tf = tf
        self._writer = tf.summary.create_file_writer(os.fspath(folder))
        # The metadata of TensorBoard's own `scalar`; TensorFlow 2.21 comes without TensorBoard.
        kinds = tf.compat.v1.SummaryMetadata
        self._scalar = kinds(plugin_data=kinds.PluginData(plugin_name="scalars"))

    def write(self, step: int, scalars: dict[str, float]) -> None:
        """Writes numbers by name."""
        with self._writer.as_default(step=step):
            for name, value in scalars.items():
                self._tf.summary.write(name, self._tf.constant(value), metadata=self._scalar)

    def flush(self) -> None:
        """Writes the buffered numbers."""
        self._writer.flush()


def write_plot(history: History, work: Path, monitor: str, unit: str) -> str:
    """Draws the curves of a run by TensorBoard's files, if it can; returns a line of the log.

    `monitor` is the score that chose the exported step, and `unit` what the history counts.
    """
    logs = work / "checkpoints" / "logs"
    scores = {int(each["step"]): 100 * each[monitor] for each in history.evaluations}
    best = history.best_step or (0 if monitor else history.step)
    try:
        figure = plots.training_curves(
            logged_losses(logs),
            scores,
            score=f"{monitor} × 100",
            unit=unit,
            best=best,
        )
        plots.save(figure, work / "run.png")
        curves = f"curves: {as_written(work / 'run.png')}"
    except ImportError as error:
        curves = f"run.png was not drawn: {error}"
    return f"{curves}; TensorBoard: {as_written(logs)}"


def logged_losses(folder: Path) -> dict[str, dict[int, float]]:
    """Task → step → loss, from TensorBoard's files; the later value if a step was made twice."""
    import tensorflow as tf

    losses: dict[str, dict[int, float]] = {}
    with open_local(folder) as local:
        files = [str(file) for file in sorted(local.glob("events.*"))]
        for record in tf.data.TFRecordDataset(files).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                task, _, name = value.tag.rpartition("/")
                if name == "loss":
                    number = float(np.squeeze(tf.make_ndarray(value.tensor)))
                    losses.setdefault(task, {})[int(event.step)] = number
    return losses
