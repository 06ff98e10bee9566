"""The progress bar of `SentenceEncoder.encode`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import numpy as np

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
