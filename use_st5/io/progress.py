"""Progress of loops over many items, on standard error.

Bars are drawn in a terminal. Elsewhere, in a pipe or a file, long work says a line now and then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # A command imports this before it knows what it needs.
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
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from use_st5.io.progress_bars import ProgressBars

    columns = ("Encoding", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProgressBars(*columns, console=Console(stderr=True)) as progress:
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
    """Passes items on, and shows how many have passed, as a bar or in lines.

    Args:
        items: The items to pass on.
        description: The text before the bar.
        total: The number of items, if `items` does not state it.
        transient: Whether the bar disappears at the end; then none is drawn into a file or a pipe.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from use_st5.io.progress_bars import ProgressBars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    console = Console(stderr=True)
    hidden = transient and not console.is_terminal  # Otherwise it would end with an empty line.
    with ProgressBars(*columns, console=console, transient=transient, disable=hidden) as bars:
        yield from bars.track(items, total, description=description)
