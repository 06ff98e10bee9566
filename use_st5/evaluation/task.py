"""What every evaluation task is: a protocol, the data it needs, and a way to run it."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from use_st5.data.data_folder import DataFolder, DataSource, MissingDataError
from use_st5.vector_store import Encode, VectorCache


@dataclass(frozen=True)
class TaskResult:
    """Scores with their names, and what plots need beyond them.

    Attributes:
        main: The name, in `scores`, of the one that tables show.
        scores: Name → value in its natural unit: correlations in −1 … 1, accuracies, F1 and AUC in
            0 … 1, WEAT's effect sizes in standard deviations. NaN where it is undefined. Names say
            the statistic and the aggregation: "spearman_all", "accuracy", "f1".
        counts: Name → number of what was compared: "pairs", "train", "test".
        details: Anything more, as JSON takes it: parts of a set, settings that were chosen.
    """

    main: str
    scores: dict[str, float]
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.main not in self.scores:
            raise ValueError(f"main: expected one of {[*self.scores]}, received {self.main!r}.")


T = TypeVar("T")


class Progress:
    """Tells nobody how far the work is; whoever shows it to people overrides the methods."""

    def started(self, task: EvaluationTask, number: int, total: int) -> None:
        """Task `number`, from 1, of `total` begins."""

    def encoding(self, encode: Encode) -> Encode:
        """`encode`, or what calls it and shows how many sentences it was given."""
        return encode

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

    embed: VectorCache
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
        optional_sources: Data sets it uses where they are there; of these it needs at least one.
    """

    name: str
    group: str
    title: str
    protocol: str
    sources: tuple[DataSource, ...] = ()
    optional_sources: tuple[DataSource, ...] = ()

    def options(self) -> dict[str, Any]:
        """The settings that change the outcome, as JSON takes them."""
        return {}

    def used_sources(self, data: DataFolder) -> tuple[DataSource, ...]:
        """The data sets that it would read from a folder.

        Raises:
            MissingDataError: One that it needs is not there; the message says how to get it.
        """
        for source in self.sources:
            data.find(source)
        found = tuple(source for source in self.optional_sources if data.has(source))
        if self.optional_sources and not found:
            names = ", ".join(source.name for source in self.optional_sources)
            raise MissingDataError(
                f"{self.title}: expected at least one of {names} in {data.path}, found none. Get "
                f"for example {self.optional_sources[0].name} from "
                f"{self.optional_sources[0].origin}."
            )
        return self.sources + found

    def read(self, data: DataFolder) -> Any:
        """Reads its data sets, in the form that `run` evaluates on.

        `use-st5 data` calls found what this reads. By default they are only looked for.

        Raises:
            FileNotFoundError: A data set is missing, or there in part.
            ValueError: The data is not in its format; the message names file and line.
        """
        self.used_sources(data)

    @abc.abstractmethod
    def run(self, context: TaskContext) -> TaskResult:
        """Evaluates.

        Raises:
            ValueError: The data is not in its format (the message names file and line), or the
                encoder gives something unusable.
        """
