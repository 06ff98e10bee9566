"""What a training run has done so far."""

from __future__ import annotations

import dataclasses
import math
from typing import Any


@dataclasses.dataclass
class History:
    """Progress, measurements and the best score of a run.

    Attributes:
        step: Updates made.
        task_steps: Updates made per task, by name.
        evaluations: `{"step": …, metric: …}` of each evaluation.
        best_step: Step of the best evaluation, None before the first.
        best_score: Its monitored metric.
        records: `{"step": …, "task": …, "loss": …, metric: …}` of each call from the host, means
            over its steps; those of this process alone, since they are not in checkpoints.
    """

    step: int = 0
    task_steps: dict[str, int] = dataclasses.field(default_factory=dict)
    evaluations: list[dict[str, float]] = dataclasses.field(default_factory=list)
    best_step: int | None = None
    best_score: float | None = None
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def improve(self, score: float, *, mode: str) -> bool:
        """Takes over `score` at the current step if it is the best so far; says whether it is.

        Args:
            score: The monitored metric; NaN is never the best.
            mode: `"max"` or `"min"`.
        """
        if math.isnan(score):
            return False
        sign = 1.0 if mode == "max" else -1.0
        if self.best_score is not None and sign * score <= sign * self.best_score:
            return False
        self.best_step, self.best_score = self.step, score
        return True

    def to_state(self) -> dict[str, Any]:
        """What a checkpoint keeps, as JSON values."""
        state = dataclasses.asdict(self)
        del state["records"]
        return state
