"""All evaluation tasks, by name and by group, and what reports show of the groups."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.task import EvaluationTask

if TYPE_CHECKING:
    from use_st5.evaluation.report.sections import GroupSection

# Modules with the tuples TASKS and SECTIONS, in the order of the tables.
_HOMES = (
    "use_st5.evaluation.sts.tasks",
    "use_st5.evaluation.senteval.tasks",
    "use_st5.evaluation.probing.tasks",
    "use_st5.evaluation.glue.tasks",
    "use_st5.evaluation.little_data.tasks",
    "use_st5.evaluation.geometry",
    "use_st5.evaluation.bias",
    "use_st5.evaluation.tatoeba.tasks",
    "use_st5.evaluation.bucc.tasks",
    "use_st5.evaluation.multilingual_sts.tasks",
)


@functools.cache
def all_tasks() -> dict[str, EvaluationTask]:
    """Name → task, in the order of the tables."""
    tasks = [task for home in _HOMES for task in importlib.import_module(home).TASKS]
    by_name = {task.name: task for task in tasks}
    if len(by_name) != len(tasks):
        raise ValueError(f"Two tasks have one name: {[task.name for task in tasks]}")
    return by_name


@functools.cache
def group_sections() -> tuple[GroupSection, ...]:
    """What reports show of the groups, in the order of a report."""
    sections = [one for home in _HOMES for one in importlib.import_module(home).SECTIONS]
    return tuple(sorted(sections, key=lambda section: section.last))


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
        ValueError: A name is unknown, or none is given.
    """
    names = [name for part in wanted.split(",") if (name := part.strip())]
    grouped = groups()
    known = {"all": [*all_tasks().values()], **grouped}
    known |= {name: [task] for name, task in all_tasks().items()}
    if not names or (unknown := [name for name in names if name not in known]):
        received = ", ".join(unknown) if names else "none"
        raise ValueError(
            f"tasks: expected names of tasks, groups ({', '.join(grouped)}) or all, received "
            f"{received}. `use-st5 evaluate --list` shows them."
        )
    chosen = {task.name for name in names for task in known[name]}
    return [task for name, task in all_tasks().items() if name in chosen]


def with_data(tasks: Iterable[EvaluationTask], folder: DataFolder) -> list[EvaluationTask]:
    """The tasks whose data is in a folder."""
    found = []
    for task in tasks:
        try:
            task.used_sources(folder)
        except MissingDataError:
            continue
        found.append(task)
    return found
