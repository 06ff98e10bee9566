"""All evaluation tasks, by name and by group."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable

from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.task import EvaluationTask

# Modules with a tuple TASKS, in the order of the tables.
_MODULES = (
    "sts",
    "classification",
    "probing",
    "pairs",
    "minimal_pairs",
    "retrieval",
    "geometry",
    "bias",
    "translations",
    "multilingual_sts",
)


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
    """The tasks that a list names.

    Args:
        wanted: Names of tasks and groups, with commas between them, or "all".

    Returns:
        The tasks, each once, in the order of the tables.

    Raises:
        ValueError: A name is unknown, or there are no names.
    """
    names = [name for part in wanted.split(",") if (name := part.strip())]
    grouped = groups()
    tasks_by_name = {"all": [*all_tasks().values()], **grouped}
    tasks_by_name |= {name: [task] for name, task in all_tasks().items()}
    if not names or (unknown := [name for name in names if name not in tasks_by_name]):
        received = ", ".join(unknown) if names else "none"
        raise ValueError(
            f"tasks: expected names of tasks, groups ({', '.join(grouped)}) or all, received "
            f"{received}. `use-st5 evaluate --list` shows them."
        )
    chosen = {task.name for name in names for task in tasks_by_name[name]}
    return [task for name, task in all_tasks().items() if name in chosen]


def with_data(tasks: Iterable[EvaluationTask], folder: DataFolder) -> list[EvaluationTask]:
    """The tasks whose data is in a folder."""
    available_tasks = []
    for task in tasks:
        try:
            task.used_sources(folder)
        except MissingDataError:
            continue
        available_tasks.append(task)
    return available_tasks
