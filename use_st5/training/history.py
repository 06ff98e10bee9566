"""The history of a training run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any


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
        """Takes over the current step's score if it is the best so far; says whether it is.

        `monitor` is the metric that is the score; None: the first. NaN is never the best.
        """
        if monitor is None and metrics:
            monitor = next(iter(metrics))
        if monitor not in metrics:
            raise ValueError(
                f"Expected monitor to name one of the metrics {sorted(metrics)}. "
                f"Received: {monitor!r}"
            )
        score = metrics[monitor]
        if math.isnan(score):
            return False
        sign = {"max": 1.0, "min": -1.0}[mode]
        if self.best_score is not None and sign * score <= sign * self.best_score:
            return False
        self.best_step, self.best_score = self.step, score
        return True

    def choose_best_of(self, steps: Collection[int], *, monitor: str | None, mode: str) -> None:
        """Takes the best of the evaluations at some steps; none if there is no such evaluation."""
        last, self.best_step, self.best_score = self.step, None, None
        for evaluation in self.evaluations:
            metrics = {name: value for name, value in evaluation.items() if name != "step"}
            self.step = int(evaluation["step"])
            if self.step in steps:
                self.improve(metrics, monitor=monitor, mode=mode)
        self.step = last

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
