"""What every evaluation task is: a protocol, the data it needs, and a way to run it."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from use_st5.embedder import Embedder
from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.data_source import DataSource
from use_st5.evaluation.task_result import TaskResult

T = TypeVar("T")


class Progress:
    """Tells nobody how far a task is; whoever shows it to people overrides `track`."""

    def track(self, steps: Iterable[T], description: str, total: int | None = None) -> Iterable[T]:
        """Passes the steps through; `total` is needed where they have no length."""
        del description, total
        return steps


@dataclass(frozen=True)
class TaskContext:
    """What a task is given to run with.

    Attributes:
        embed: Sentences → floats `[sentences, dim]`; shared by all tasks, each distinct sentence
            is encoded once.
        data: The folder with the data sets.
        seed: Of everything random.
        progress: Shows long work that is not encoding.
    """

    embed: Embedder
    data: DataFolder
    seed: int = 1111
    progress: Progress = field(default_factory=Progress)


class EvaluationTask(abc.ABC):
    """One row of a results table.

    Subclasses are frozen dataclasses; each field that changes the outcome is among `options`.

    Attributes:
        name: Unique, lower case, for example "sts12"; what `--tasks` takes.
        group: The tasks of one paper's table, for example "sts"; `--tasks` takes it too.
        title: For people, for example "STS12".
        protocol: One sentence on what is computed, with the aggregation, and its source.
        sources: The data sets it needs; empty where the package brings them.
    """

    name: str
    group: str
    title: str
    protocol: str
    sources: tuple[DataSource, ...]

    def options(self) -> dict[str, Any]:
        """The settings that change the outcome, as JSON takes them."""
        return {}

    @abc.abstractmethod
    def run(self, context: TaskContext) -> TaskResult:
        """Evaluates.

        Raises:
            ValueError: The data is not in its format (the message names file and line), or the
                encoder gives something unusable.
        """
