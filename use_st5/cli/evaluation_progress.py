"""How far an evaluation is, on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from use_st5._progress_bars import ProgressBars
from use_st5.evaluation.task import EvaluationTask, Progress, T
from use_st5.vector_store import Encode


class EvaluationProgress(Progress):
    """Draws bars in a terminal: the tasks, and whatever is going on within one.

    Args:
        bars: Where to draw; `drawn_progress` makes it.
    """

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks = bars.add_task("tasks", total=None)
        self._sentences: TaskID | None = None

    def started(self, task: EvaluationTask, number: int, total: int) -> None:
        """Names the task and moves the bar of tasks."""
        self._bars.update(
            self._tasks, description=task.title, completed=number - 1, total=total, refresh=True
        )

    def track(self, steps: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
        """Passes the steps through below a bar of their own, which goes when they are done."""
        total = len(steps) if total is None and isinstance(steps, Sized) else total
        bar = self._bars.add_task(f"  {description}", total=total)
        try:
            for step in steps:
                yield step
                self._bars.advance(bar)
        finally:
            self._bars.remove_task(bar)

    def encoding(self, encode: Encode) -> Encode:
        """`encode` with a bar that counts its sentences, of all tasks together."""

        def counting(sentences: list[str]) -> Any:
            if self._sentences is None:
                self._sentences = self._bars.add_task("  sentences encoded", total=None)
            vectors = encode(sentences)
            self._bars.advance(self._sentences, len(sentences))
            return vectors

        return counting


@contextmanager
def drawn_progress() -> Iterator[EvaluationProgress]:
    """Bars on standard error while the block runs; lines where that is no terminal."""
    terminal = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBars(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal
    ) as bars:
        yield EvaluationProgress(bars)
