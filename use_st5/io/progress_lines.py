"""Lines of progress on standard error, for long work whose output is no terminal."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


@contextmanager
def progress_lines(state: Callable[[], str]) -> Iterator[None]:
    """Writes on standard error how far the work of the block is, unless that is a terminal.

    A line comes every ten seconds; after some minutes, a line comes when another tenth of the time
    has passed. Work of less than ten seconds writes nothing. A block writes nothing while another
    one runs inside it.

    Args:
        state: Returns the text of a line before the seconds; it is called in another thread.
    """
    if sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_say_lines, args=(state, ended), daemon=True)
    _states.append(state)
    thread.start()
    try:
        yield
    finally:
        _states.remove(state)
        ended.set()
        thread.join()


@contextmanager
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


def _say_lines(state: Callable[[], str], ended: threading.Event) -> None:
    began = time.monotonic()
    wait = _LINE_EVERY
    while not ended.wait(wait):
        passed = time.monotonic() - began
        if _states and _states[-1] is state and (said := state()):
            sys.stderr.write(f"{said}, {passed:.0f} s\n")
            sys.stderr.flush()
        wait = max(_LINE_EVERY, passed / 10)
