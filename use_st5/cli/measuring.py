"""A measurement: its progress, its record, its table and its plots."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

from use_st5._files import atomic_path
from use_st5.cli.output import say

Record = TypeVar("Record")


def measured(
    measure: Callable[..., Record],
    models: Sequence[str],
    path: Path,
    options: Mapping[str, Any],
    *,
    markdown: Callable[[Record], str],
    draw: Callable[[Record, Path], list[Path]] | None,
    show: Callable[[Record], None],
) -> None:
    """Measures, writes and shows the record, its table beside it and its plots; says where it is.

    Args:
        measure: Called with models, path and options, `on_visit` and this `command`.
        models: Names, folders or shapes.
        path: The record; an older one there is continued.
        options: Of `measure`.
        markdown: Record → its table.
        draw: Record, folder → the plots that were written; None: none are.
        show: Prints a record.
    """
    with _measuring(path) as on_visit:
        command = shlex.join(["use-st5", *sys.argv[1:]])
        record = measure(models, path, **options, on_visit=on_visit, command=command)
    table = path.with_suffix(".md")
    with atomic_path(table) as temporary:
        temporary.write_text(markdown(record), encoding="utf-8")
    plots = draw(record, path.parent) if draw else []
    show(record)
    say(f"written: {', '.join(map(str, [path, table, *plots]))}")


@contextmanager
def _measuring(path: Path) -> Iterator[Callable[[int, int], None]]:
    """A bar or lines of what is measured; Ctrl-C says what is kept in a file."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from use_st5._progress_bars import ProgressBars

    terminal = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    reached = [0, 0]
    try:
        with ProgressBars(
            *columns, console=terminal, transient=True, disable=not terminal.is_terminal
        ) as bars:
            bar = bars.add_task("measuring", total=None)

            def on_visit(done: int, total: int) -> None:
                reached[:] = done, total
                bars.update(bar, completed=done, total=total)

            yield on_visit
    except KeyboardInterrupt as interrupt:
        done, total = reached
        kept = f"{done} of {total} measurements are kept in {path}; the same command goes on"
        say(f"interrupted: {kept if done else 'nothing was measured yet'}")
        raise typer.Exit(130) from interrupt
