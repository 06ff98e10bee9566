"""Standard error for what the commands say, without what TensorFlow's libraries write there."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

# What is remembered of the libraries' output, in bytes, and told of it, in characters.
_REMEMBERED = 65536
_TOLD = 600
# Notes, warnings and errors that a library survived, in the forms of TensorFlow 2.20 and 2.21.
LOG_LINE = re.compile(
    r"[IWE]\d{4} \d\d:\d\d:[\d.]+ "
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: [IWE] "
    r"|WARNING: All log messages before absl::InitializeLog"
)
# Written by faulthandler, before the stacks of all threads.
_CRASH = re.compile(r"^Fatal Python error: .*$", re.MULTILINE)


@contextmanager
def native_stderr_unheard() -> Iterator[None]:
    """Leaves standard error to Python: what native code writes to descriptor 2 is dropped.

    No setting silences TensorFlow wholly: it logs while it is loaded, before it reads a setting,
    and some of its libraries read none. If the process is ended within the block by anything but
    Python (a failed check, `std::terminate`, a crash), the last words are written after all, as one
    line, by a process that was forked for it and ends with this one.

    Only for the process of a command: `sys.stderr` is exchanged for good, and the descriptor stays
    silent after the block, since libraries also write while they are torn down.
    """
    heard = os.dup(sys.stderr.fileno())
    # In both places, since rich asks the second for the width of the terminal.
    sys.stderr = os.fdopen(
        heard, "w", buffering=1, encoding=sys.stderr.encoding, errors="backslashreplace"
    )
    sys.__stderr__ = sys.stderr  # type: ignore[misc]
    watcher = _start_watcher(heard)
    faulthandler.enable(2)
    try:
        yield
    finally:
        if watcher is not None:  # Before the descriptor is closed, which is what it waits for.
            os.kill(watcher, signal.SIGKILL)
            os.waitpid(watcher, 0)
        _silence()


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != 2:  # As it is where 2 was the lowest one free.
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _start_watcher(heard: int) -> int | None:
    """Points descriptor 2 at a new process and gives its id; at nothing where none can be had."""
    reading, writing = os.pipe()
    watcher = None
    with contextlib.suppress(AttributeError, OSError):  # No fork on Windows; no process left.
        watcher = os.fork()
    if watcher == 0:
        os.close(writing)
        _watch(reading, heard)
    if watcher is None:
        _silence()
    else:
        os.dup2(writing, 2)
    os.close(reading)
    os.close(writing)
    return watcher


def _watch(source: int, heard: int) -> NoReturn:
    """Reads until the command's process has ended, which kills this one first if all is well."""
    try:
        os.setsid()  # Ctrl-C is for the command.
        words = b""
        while block := os.read(source, _REMEMBERED):
            words = (words + block)[-_REMEMBERED:]
        if last := last_words(words.decode(errors="replace")):
            line = f"error: the command was ended; the last a library said: {last} (--debug: all)"
            os.write(heard, f"{line}\n".encode())
    finally:
        os._exit(0)


def last_words(written: str) -> str:
    """What a dying process said, as one line: the end of `written` without log lines.

    Empty if there is nothing but log lines, as when the process was killed from outside.
    """
    if crash := _CRASH.search(written):
        written = written[: crash.end()]
    lines = [line for line in written.splitlines() if not LOG_LINE.match(line)]
    return " ".join(" ".join(lines).split())[-_TOLD:]
