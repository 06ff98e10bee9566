"""The tasks of `use-st5 evaluate`: their selection, `--list`, and the progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.progress import Progress as Bars
from rich.progress import TaskID

from use_st5.cli.output import echo, print_cards, print_table, say
from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.encode.vector_store import Encode
from use_st5.evaluation.bias import own_test
from use_st5.evaluation.runner import Progress
from use_st5.evaluation.task import EvaluationTask, missing_data, select_tasks

_ALL = "all"
_NO_FOLDER = "expected a data folder, received none. Give it with --data or in USE_ST5_DATA"


def chosen_tasks(
    wanted: str | None, data: Path | None, own: Sequence[Path] = ()
) -> tuple[list[EvaluationTask], dict[str, str]]:
    """The tasks whose data is there; and for the others, name of the task → what is missing.

    `wanted` has names of tasks and groups, with commas; None: all tasks, or only the association
    tests of the files `own`. A task that was named itself may not lack data, nor all tasks.
    """
    tests: list[EvaluationTask] = [own_test(file) for file in own]
    names = [test.name for test in tests]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"--weat: expected different names, received two {repeated[0]}.")
    if own and wanted is None:
        return tests, {}
    wanted = wanted or _ALL
    tasks = _selected(wanted)
    named = {part.strip() for part in wanted.split(",")}
    folder = None if data is None else DataFolder(data)
    missing = {task.name: reason for task in tasks if (reason := _what_is_missing(task, folder))}
    for task in tasks:
        if task.name in missing and (task.name in named or len(missing) == len(tasks)):
            raise MissingDataError(f"{task.name}: {missing[task.name]}")
    return [*(task for task in tasks if task.name not in missing), *tests], missing


def print_tasks(wanted: str | None, data: Path | None, *, as_json: bool) -> None:
    """Prints the tasks: what each computes, which data it needs, and the source of the data."""
    wanted = wanted or _ALL
    folder = None if data is None else DataFolder(data)
    rows = []
    for task in _selected(wanted):
        sources = task.sources
        there = "no" if _what_is_missing(task, folder) else "yes"
        rows.append({
            "task": task.name,
            "title": task.title,
            "group": task.group,
            "what it computes": task.protocol,
            "needs": " and ".join(source.name for source in sources) or "nothing",
            "there": "unknown" if sources and folder is None else there,
            "from": "; ".join(dict.fromkeys(source.origin for source in sources)) or "the package",
            "licence": "; ".join(dict.fromkeys(source.licence for source in sources)),
        })  # fmt: skip
    if as_json:
        echo(json.dumps(rows, ensure_ascii=False))
        return
    overview = wanted == _ALL and sys.stdout.isatty()
    columns = ["task", "title", "group", "there"]
    if not overview:
        columns = [*columns[:3], "what it computes", "needs", "there", "from", "licence"]
    draw = print_table if overview else print_cards
    draw(columns, [[row[column] for column in columns] for row in rows])
    if overview:
        say(
            "--list --tasks GROUP also shows what each task computes and needs, and the source and "
            "licence of its data"
        )


def _selected(wanted: str) -> list[EvaluationTask]:
    try:
        return select_tasks(wanted)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tasks") from error


def _what_is_missing(task: EvaluationTask, folder: DataFolder | None) -> str:
    if not task.sources:
        return ""
    return _NO_FOLDER if folder is None else missing_data(task, folder)


class EvaluationProgress(Progress):
    """Draws bars of the tasks and the sentences in a terminal, and prints each score."""

    def __init__(self, bars: Bars) -> None:
        self.done = 0
        self._total = 0
        self._bars = bars
        self._tasks = bars.add_task("tasks", total=None)
        self._sentences: TaskID | None = None

    def started(self, task: EvaluationTask, number: int, total: int) -> None:
        """Shows the task's name and advances the bar of tasks."""
        self._total = total
        self._bars.update(
            self._tasks, description=task.title, completed=number - 1, total=total, refresh=True
        )

    def finished(self, name: str, result: dict[str, Any], *, cached: bool) -> None:
        """Prints the task's score."""
        self.done += 1
        score, value = main_score(result)
        origin = "from the cache" if cached else f"{result['seconds']:.1f} s"
        say(f"{self.done} of {self._total}: {name}: {score} {value} ({origin})")

    def encoding(self, encode: Encode) -> Encode:
        """Returns `encode` with a bar that counts the sentences of all tasks together."""

        def counting(sentences: list[str]) -> Any:
            if self._sentences is None:
                self._sentences = self._bars.add_task("  sentences encoded", total=None)
            vectors = encode(sentences)
            self._bars.advance(self._sentences, len(sentences))
            return vectors

        return counting


def main_score(result: dict[str, Any]) -> tuple[str, str]:
    """The name and the value of the score that tables show."""
    value = result["scores"][result["main"]]
    return result["main"], "undefined" if value is None else f"{value:.4f}"
