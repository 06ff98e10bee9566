"""`use-st5 data`: lists the evaluation sets."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from use_st5.cli.evaluate import DATA_VARIABLE
from use_st5.cli.output import manual, print_cards, waiting

if TYPE_CHECKING:
    from use_st5.data.data_folder import DataFolder, DataSource
    from use_st5.evaluation.task import EvaluationTask

HELP = manual(
    f"""List the evaluation sets that are available, and how to get the others.

    The command looks for the published file names in --data, or else in the folder of the
    environment variable {DATA_VARIABLE}, and up to two folders deeper. It reads the sets that are
    there; if one cannot be read, the reason is shown. use_st5 contains none of the sets, because
    they have licences of their own. experiments/prepare_data.py of the repository makes the files
    of some sets from a download.""",
    "use-st5 data --data data",
    "USE_ST5_DATA=data use-st5 data",
)


def data(
    folder: Annotated[
        Path | None,
        typer.Option("--data", "-d", envvar=DATA_VARIABLE, help="The folder with the data sets."),
    ] = None,
) -> None:
    """Shows the data sets."""
    from use_st5.data.data_folder import DataFolder
    from use_st5.evaluation.task import all_tasks

    data_folder = None if folder is None else DataFolder(folder)
    users: dict[DataSource, list[EvaluationTask]] = {}
    for task in all_tasks().values():
        for source in task.sources:
            users.setdefault(source, []).append(task)
    with waiting("reading the data sets"):
        states = [_state(source, tasks, data_folder) for source, tasks in users.items()]
    rows = [
        (
            source.name,
            state,
            ", ".join(dict.fromkeys(task.group for task in tasks)),
            source.origin,
            source.licence,
        )
        for (source, tasks), state in zip(users.items(), states, strict=True)
    ]
    print_cards(["data set", "found", "for", "from", "licence"], rows)


def _state(source: DataSource, tasks: list[EvaluationTask], folder: DataFolder | None) -> str:
    """The place of the data set, and if it cannot be read, the reason."""
    if folder is None:
        return "unknown"
    if not folder.has(source):
        return "missing"
    path = folder.find(source)
    place = path.relative_to(folder.path).as_posix()
    errors = [_reading_error(task, folder) for task in tasks]
    about_it = [error for error in errors if str(path) in error]
    # Another file of a task may be the reason. If any task was read, this set can be read.
    reason = next(iter(about_it), errors[0] if all(errors) else "")
    return f"{place}, cannot be read: {reason}" if reason else place


@functools.cache
def _reading_error(task: EvaluationTask, folder: DataFolder) -> str:
    """The error in a task's data sets; empty if they can be read, or if one is missing."""
    from use_st5.data.data_folder import MissingDataError

    try:
        task.read(folder)
    except MissingDataError:
        return ""
    except (OSError, ValueError) as error:
        return str(error)
    return ""
