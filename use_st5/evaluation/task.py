"""An evaluation task: data, a function that scores an encoder on it, and their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from use_st5.data.data_folder import DataFolder, DataSource, MissingDataError
from use_st5.encode.vector_store import Encode, VectorCache


@dataclass(frozen=True)
class TaskResult:
    """Scores with their names, and what plots need beyond them.

    Attributes:
        main: The name of the score in `scores` that tables show.
        scores: Name → value in its natural unit: correlations in −1 … 1, accuracies, F1 and AUC in
            0 … 1, WEAT's effect sizes in standard deviations. NaN if it is undefined. Names say
            the statistic and the aggregation: "spearman_all", "accuracy", "f1".
        counts: Name → number of compared items: "pairs", "train", "test".
        details: Any other facts, ready for JSON: parts of a set, settings that were chosen.
    """

    main: str
    scores: dict[str, float]
    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


class Progress:
    """Shows nothing. Subclasses show the progress."""

    def started(self, task: EvaluationTask, number: int, total: int) -> None:
        """Called when task `number` (from 1) of `total` begins."""

    def finished(self, name: str, result: Mapping[str, Any], *, cached: bool) -> None:
        """Called with the record's entry of a finished task; `cached`: from an earlier run."""

    def encoding(self, encode: Encode) -> Encode:
        """Returns `encode`, or a function that calls it and shows the number of sentences."""
        return encode


@dataclass(frozen=True)
class TaskContext:
    """The inputs of a task: encoder, data and seed.

    Attributes:
        embed: Sentences → floats `[sentences, dim]`; all tasks share it, so that each distinct
            sentence is encoded once.
        data: The folder with the data sets.
        seed: Seed of all random numbers.
        prompts: What the model puts before a "query" and before a "document".
    """

    embed: VectorCache
    data: DataFolder
    seed: int = 1111
    prompts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EvaluationTask:
    """One row of a results table.

    Attributes:
        name: Unique, lower case, for example "sts12"; `--tasks` takes it.
        group: The tasks of one paper's table, for example "sts"; `--tasks` takes it too.
        title: The name for people, for example "STS12".
        protocol: One sentence: what is computed, the aggregation, the source.
        score: Scores the encoder of a context on the data that `reader` returned.
        reader: Reads the data from a data folder; its errors name file and line. None if the
            package contains the data.
        sources: The data sets that the task needs.
        optional_sources: Data sets that the task uses if they are there; it needs one of them.
        options: The settings that change the scores, ready for JSON.
        read_files: The files of `sources` that `reader` reads, each as a data set; None: all of
            them, also if it returns nothing because they cannot be read.
    """

    name: str
    group: str
    title: str
    protocol: str
    score: Callable[[TaskContext, Any], TaskResult]
    reader: Callable[[DataFolder], Any] | None = None
    sources: tuple[DataSource, ...] = ()
    optional_sources: tuple[DataSource, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    read_files: Callable[[DataFolder], tuple[DataSource, ...]] | None = None

    def used_sources(self, data: DataFolder) -> tuple[DataSource, ...]:
        """The data sets that the task reads from a folder.

        Raises:
            MissingDataError: A required data set is missing; the message says how to get it.
        """
        for source in self.sources:
            data.find(source)
        if self.read_files is not None and (files := self.read_files(data)):
            return files
        present_sources = tuple(source for source in self.optional_sources if data.has(source))
        if self.optional_sources and not present_sources:
            names = ", ".join(source.name for source in self.optional_sources)
            raise MissingDataError(
                f"{self.title}: expected at least one of {names} in {data.path}, found none. Get "
                f"for example {self.optional_sources[0].name} from "
                f"{self.optional_sources[0].origin}."
            )
        return self.sources + present_sources

    def read(self, data: DataFolder) -> Any:
        """Reads the data sets; `use-st5 data` lists them as found if this succeeds.

        Raises:
            FileNotFoundError: A data set is missing, or a part of it.
            ValueError: A file is not in its format; the message names file and line.
        """
        self.used_sources(data)
        return None if self.reader is None else self.reader(data)

    def run(self, context: TaskContext) -> TaskResult:
        """Reads the data and scores the encoder.

        Raises:
            FileNotFoundError: As in `read`.
            ValueError: As in `read`, or the encoder returns something unusable.
        """
        return self.score(context, self.read(context.data))
