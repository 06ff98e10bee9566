"""An evaluation task: data, a function that scores an encoder on it, and their names."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from use_st5.data.data_folder import DataFolder, DataSource, MissingDataError
from use_st5.encode.vector_store import VectorCache

# Modules with a tuple TASKS, in the order of the tables.
_MODULES = (
    *("sts", "classification", "pairs", "minimal_pairs", "retrieval"),
    *("bias", "translations", "multilingual_sts", "xnli"),
)
# Names that `--tasks` takes for several groups.
_COLLECTIONS = {
    "multilingual": {"tatoeba", "bucc", "ntrex", "mkqa", "multilingual_sts", "xnli"},
}


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
    options: Mapping[str, Any] = field(default_factory=dict)
    read_files: Callable[[DataFolder], tuple[DataSource, ...]] | None = None

    def used_sources(self, data: DataFolder) -> tuple[DataSource, ...]:
        """The data sets that the task reads; a MissingDataError says how to get one."""
        for source in self.sources:
            data.find(source)
        return (self.read_files and self.read_files(data)) or self.sources

    def read(self, data: DataFolder) -> Any:
        """Reads the data sets."""
        self.used_sources(data)
        return None if self.reader is None else self.reader(data)

    def run(self, context: TaskContext) -> TaskResult:
        """Reads the data and scores the encoder."""
        return self.score(context, self.read(context.data))


@functools.cache
def all_tasks() -> dict[str, EvaluationTask]:
    """Name → task, in the order of the tables."""
    modules = (importlib.import_module(f"use_st5.evaluation.{name}") for name in _MODULES)
    return {task.name: task for module in modules for task in module.TASKS}


def groups() -> dict[str, list[EvaluationTask]]:
    """Name of a group → its tasks."""
    grouped: dict[str, list[EvaluationTask]] = {}
    for task in all_tasks().values():
        grouped.setdefault(task.group, []).append(task)
    return grouped


def select_tasks(wanted: str) -> list[EvaluationTask]:
    """The tasks that a list of names of tasks and groups, with commas, or "all" means.

    They are in the order of the tables, each once, and then those of mteb, such as "mteb:SciFact".
    """
    given = dict.fromkeys(name for part in wanted.split(",") if (name := part.strip()))
    others = [name.removeprefix("mteb:") for name in given if name.startswith("mteb:")]
    names = {name for name in given if not name.startswith("mteb:")}
    for collection in names & _COLLECTIONS.keys():
        names = names - {collection} | _COLLECTIONS[collection]
    tasks, known = all_tasks(), [*groups(), *_COLLECTIONS]
    unknown = ", ".join(sorted(names - tasks.keys() - {*known, "all"})) if given else "none"
    if unknown:
        expected = f"names of tasks, mteb:NAME, groups ({', '.join(known)}) or all"
        remedy = "`use-st5 evaluate --list` shows them."
        raise ValueError(f"tasks: expected {expected}, received {unknown}. {remedy}")
    chosen = [task for task in tasks.values() if names & {"all", task.name, task.group}]
    if others:
        module = importlib.import_module("use_st5.evaluation.mteb_tasks")
        chosen += map(module.mteb_task, others)
    return chosen


def with_data(tasks: Iterable[EvaluationTask], folder: DataFolder) -> list[EvaluationTask]:
    """The tasks whose data is in a folder."""
    return [task for task in tasks if not missing_data(task, folder)]


def missing_data(task: EvaluationTask, folder: DataFolder) -> str:
    """What a folder lacks for a task, and where to get it; empty if the data is there."""
    try:
        task.used_sources(folder)
    except MissingDataError as error:
        return str(error)
    return ""
