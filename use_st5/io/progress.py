"""Progress of long work on standard error: bars in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # A command imports this before it knows what it needs.
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

Item = TypeVar("Item")

# Shorter inputs are done before a progress bar could be read.
_LONG_INPUT = 20_000
# Seconds before the first line, and between two of them at least.
_LINE_EVERY = 10.0
# The states of the blocks that are running, outermost first; only the innermost one writes lines.
_states: list[Callable[[], str]] = []
# C0 and C1 except tabs and line feeds, and the marks that change the direction of a text.
_CONTROLS = dict.fromkeys(
    (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    ),
    "\ufffd",
)


def without_controls(text: str) -> str:
    """The text as terminals and pages show it: no character in it moves a cursor or hides others.

    A foreign model or text could otherwise clear the screen or show another text than it has.
    """
    return text.translate(_CONTROLS)


def markdown_text(text: str) -> str:
    """A foreign name as one line of text for Markdown, also in a table: neither markup nor HTML."""
    line = " ".join(without_controls(text).split())
    return re.sub(r"([\\`*\[\]<>&|~]|\b_|_\b)", r"\\\1", line)


def with_progress(
    batches: Iterable[np.ndarray], total: int, show: bool | None
) -> Iterator[np.ndarray]:
    """Passes the batches through, drawing a bar of sentences on standard error if it is wanted."""
    if show is None:
        show = total >= _LONG_INPUT and sys.stderr.isatty()
    if not show:
        yield from batches
        return
    with progress_bars(disable=False) as progress:
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

    A `transient` bar disappears at the end.
    """
    with progress_bars(transient=transient) as bars:
        task = bars.add_task(description, total=total or length_hint(items) or None)
        for item in items:  # rich's `track` counts only what is drawn.
            yield item
            bars.advance(task)


@contextlib.contextmanager
def progress_bars(
    *columns: str | ProgressColumn,
    console: Console | None = None,
    lines: bool = True,
    **options: Any,
) -> Iterator[Progress]:
    """Gives rich's `Progress` for a block; if the console is no terminal, lines say how far it is.

    `lines` says whether they do; `disable` affects only the bars.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = console or Console(stderr=True)
    usual = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    options = {"disable": not console.is_terminal, **options}
    with Progress(*(columns or usual), console=console, **options) as progress:
        if not lines or console.is_terminal:
            yield progress
            return
        with progress_lines(lambda: _state(progress)):
            yield progress


def _state(progress: Progress) -> str:
    """How far each unfinished task is, in words."""
    states = []
    for task in progress.tasks:
        if task.visible and (task.total is None or task.completed < task.total):
            total = "" if task.total is None else f" of {task.total:,.0f}"
            fields = [value for value in task.fields.values() if isinstance(value, str) and value]
            state = f"{task.description.strip()}: {task.completed:,.0f}{total}"
            states.append("  ".join([state, *fields]))
    return "; ".join(states)


@contextlib.contextmanager
def progress_lines(state: Callable[[], str]) -> Iterator[None]:
    """Writes on standard error how far the work of the block is, unless that is a terminal.

    A line comes every ten seconds; after some minutes, a line comes when another tenth of the time
    has passed. Work of less than ten seconds writes nothing. A block writes nothing while another
    one runs inside it. `state` is called in another thread.
    """
    if sys.stderr.isatty():
        yield
        return
    ended = threading.Event()

    def say_lines() -> None:
        began, wait = time.monotonic(), _LINE_EVERY
        while not ended.wait(wait):
            passed = time.monotonic() - began
            if _states and _states[-1] is state and (said := state()):
                sys.stderr.write(f"{said}, {passed:.0f} s\n")
                sys.stderr.flush()
            wait = max(_LINE_EVERY, passed / 10)

    thread = threading.Thread(target=say_lines, daemon=True)
    _states.append(state)
    thread.start()
    try:
        yield
    finally:
        _states.remove(state)
        ended.set()
        thread.join()


@contextlib.contextmanager
def waiting(message: str) -> Iterator[None]:
    """Shows `message`: with a spinner in a terminal, elsewhere by `progress_lines`."""
    if not sys.stderr.isatty():
        with progress_lines(lambda: message):
            yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(without_controls(message))):
        yield
