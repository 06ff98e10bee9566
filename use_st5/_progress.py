"""Progress bars on standard error: of `encode`, and of whatever is read or done one by one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")

# Shorter inputs are done before a progress bar could be read.
_LONG_INPUT = 20_000


def with_progress(
    batches: Iterable[np.ndarray], total: int, show: bool | None
) -> Iterator[np.ndarray]:
    """Passes the batches through, drawing a bar of sentences on standard error if it is wanted."""
    if show is None:
        show = total >= _LONG_INPUT and sys.stderr.isatty()
    if not show:
        yield from batches
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("Encoding", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("Encoding", total=total)
        for batch in batches:
            yield batch
            progress.advance(task, len(batch))


def watched(
    items: Iterable[Item],
    description: str,
    total: int | None = None,
    *,
    transient: bool = False,
) -> Iterator[Item]:
    """Passes items on, drawing how many have passed.

    Args:
        items: What passes.
        description: Stands before the bar.
        total: How many there are, where `items` does not say it.
        transient: Whether the bar goes at the end; then nothing is drawn into a file or a pipe.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = transient and not console.is_terminal  # Else its end is an empty line.
    yield from track(
        items, description, total, console=console, transient=transient, disable=hidden
    )
