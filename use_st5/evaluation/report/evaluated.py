"""The models that a report compares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from use_st5.evaluation.record import EvaluationRecord

Task = dict[str, Any]


@dataclass(frozen=True)
class Evaluated:
    """One model of a report.

    Attributes:
        record: What was measured.
        position: Its place in the report, from 0; chooses its colour and its marker everywhere.
    """

    record: EvaluationRecord
    position: int

    @property
    def name(self) -> str:
        """The model's name on one line."""
        return one_line(self.record.model["name"])

    def task(self, name: str) -> Task | None:
        """What was found by a task; None where it was not run."""
        return self.record.tasks.get(name)

    def score(self, task: str, name: str | None = None) -> float | None:
        """One score in its natural unit.

        Args:
            task: Name of the task.
            name: Name of the score; by default the task's main one.

        Returns:
            NaN where it is undefined, None where it was not measured.
        """
        found = self.task(task)
        if found is None:
            return None
        key = name or found["main"]
        if key not in found["scores"]:
            return None
        value = found["scores"][key]
        return math.nan if value is None else float(value)

    def mean(self, tasks: Iterable[str]) -> float | None:
        """Mean of the main scores; None where one was not measured, NaN where one is undefined."""
        scores = [self.score(task) for task in tasks]
        measured = [score for score in scores if score is not None]
        if not scores or len(measured) < len(scores):
            return None
        return sum(measured) / len(measured)


def evaluated_models(records: Sequence[EvaluationRecord]) -> list[Evaluated]:
    """Gives each record its place.

    Raises:
        ValueError: There are no records, or two of one name.
    """
    models = [Evaluated(record, position) for position, record in enumerate(records)]
    if not models:
        raise ValueError("Expected the records of one model or more, received none.")
    names = [model.name for model in models]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Expected a name of its own for each model, received {', '.join(repeated)} more than "
            "once. `use-st5 report NAME=FILE` calls the model of a file by another name."
        )
    return models


def tasks_of(models: Iterable[Evaluated], group: str) -> dict[str, Task]:
    """Name → what the first model that has it found, in the records' order, for one group."""
    found: dict[str, Task] = {}
    for model in models:
        for name, task in model.record.tasks.items():
            if task["group"] == group:
                found.setdefault(name, task)
    return found


def one_line(text: object) -> str:
    """The text with every run of white space as one space."""
    return " ".join(str(text).split())
