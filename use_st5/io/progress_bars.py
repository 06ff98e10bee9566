"""Progress bars in a terminal; without a terminal, a line from time to time."""

from __future__ import annotations

import contextlib
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task

from use_st5.io.progress_lines import progress_lines


class ProgressBars(Progress):
    """Rich's bars; if the console is no terminal, the lines of `progress_lines`.

    Args:
        *columns: As in `Progress`.
        console: The console to draw on.
        lines: Whether lines are written if there is no terminal.
        **options: As in `Progress`; `disable` affects only the bars.
    """

    def __init__(
        self, *columns: str | ProgressColumn, console: Console, lines: bool = True, **options: Any
    ) -> None:
        super().__init__(*columns, console=console, **options)
        self._says_lines = lines and not console.is_terminal
        self._lines = contextlib.ExitStack()

    def start(self) -> None:
        """Begins to draw, or to write lines."""
        super().start()
        if self._says_lines:
            self._lines.enter_context(progress_lines(self.state))

    def stop(self) -> None:
        """Stops drawing or writing lines."""
        self._lines.close()
        super().stop()

    def state(self) -> str:
        """How far each unfinished task is, in words."""
        return "; ".join(_state(task) for task in self.tasks if task.visible and not _done(task))


def _done(task: Task) -> bool:
    return task.total is not None and task.completed >= task.total


def _state(task: Task) -> str:
    total = "" if task.total is None else f" of {task.total:,.0f}"
    fields = [value for value in task.fields.values() if isinstance(value, str) and value]
    return "  ".join([f"{task.description.strip()}: {task.completed:,.0f}{total}", *fields])
