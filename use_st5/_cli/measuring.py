"""The progress of a measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from use_st5._cli.output import say


@contextmanager
def measuring(path: Path) -> Iterator[Callable[[int, int], None]]:
    """A bar of what is measured in a terminal; Ctrl-C says what is kept in a file."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    terminal = Console(stderr=True)
    columns = ("measuring", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    reached = [0, 0]
    try:
        with Progress(
            *columns, console=terminal, transient=True, disable=not terminal.is_terminal
        ) as bars:
            bar = bars.add_task("", total=None)

            def on_visit(done: int, total: int) -> None:
                reached[:] = done, total
                bars.update(bar, completed=done, total=total)

            yield on_visit
    except KeyboardInterrupt as interrupt:
        done, total = reached
        kept = f"{done} of {total} measurements are kept in {path}; the same command goes on"
        say(f"interrupted: {kept if done else 'nothing was measured yet'}")
        raise typer.Exit(130) from interrupt
