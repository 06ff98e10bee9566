"""Ctrl-C: heard from the first moment on, and said in one line.

It imports what Python has at hand alone: importing the commands takes most of a second, in which
a Ctrl-C is heard already.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130

_AFTER_THE_CALL = 0.02  # seconds
# The Ctrl-Cs of this process: what is raised for one may be gone when the command ends.
_heard: list[int] = []


def interrupted() -> bool:
    """Whether a Ctrl-C was heard."""
    return bool(_heard)


def end_interrupted() -> NoReturn:
    """Says so and ends the command with the exit code 130."""
    drop_output()
    sys.stderr.write("interrupted\n")
    # What is raised while a string is evaluated, as for a named tuple, makes Python end by the
    # signal instead of the exit code, until another string is.
    eval("0")  # noqa: S307
    sys.exit(INTERRUPTED)


def drop_output() -> bool:
    """Lets standard output go nowhere if it takes nothing, so that Python's exit is silent."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def hear_every_interrupt() -> None:
    """Lets a Ctrl-C end the command wherever it lands, and notes it.

    Keras swallows what is raised in some places (a bare `except:` while a graph is traced) and
    fails later with another error. Python swallows what is raised in a `__del__`, of which
    TensorFlow has many, and prints it.
    """
    if signal.getsignal(signal.SIGINT) is _interrupt:
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # Else it is ignored.
        signal.signal(signal.SIGINT, _interrupt)
    report = sys.unraisablehook

    def interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            report(unraisable)
            return
        # Raised here it would be swallowed, too.
        again = threading.Timer(_AFTER_THE_CALL, _thread.interrupt_main)
        again.daemon = True
        again.start()

    sys.unraisablehook = interrupt_again


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _heard.append(number)
    raise KeyboardInterrupt


def hear_no_more_interrupts() -> None:
    """Lets a Ctrl-C kill the process, which is about to end: Python would print a traceback."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
