"""The end of a command: an error is one line on standard error, Ctrl-C gives the exit code 130."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from use_st5.cli.output import echo

INTERRUPTED = 130
_EXPLAINED = (ValueError, OSError, ImportError)  # Their messages are enough.
_REMEDIES: dict[int | None, str] = {
    errno.ENOSPC: "free some space, or write to another place",
    errno.EACCES: "ask for permission, or choose another path",
}
# The Ctrl-Cs of this process. They are counted because Keras and destructors may swallow the
# exception.
_interrupts: list[int] = []


class OneLineErrors(TyperGroup):
    """A command group; exit codes: 0 done, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C."""

    def main(  # type: ignore[override]  # the other options are passed on by keyword
        self,
        args: list[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Runs the command line `args` (default: `sys.argv[1:]`) and exits with its code."""
        words, debug = debug_first(list(sys.argv[1:] if args is None else args))
        self._said = False
        try:
            options = {**extra, "standalone_mode": False}
            result = super().main(words, prog_name, **options)
            sys.stdout.flush()
        except typer.Abort:  # typer turns a Ctrl-C into this.
            result = INTERRUPTED
        except BrokenPipeError:  # The reader (`head`) has ended, so this command ends silently.
            _drop_output()
            sys.exit(INTERRUPTED if _interrupts else 1)
        except Exception as error:
            if debug:
                traceback.print_exc()
            if not _interrupts:
                _report(error)
                # Usage errors have the code 2; their class differs between releases of typer.
                sys.exit(getattr(error, "exit_code", 1))
            result = INTERRUPTED
        if not self._said and (_interrupts or result == INTERRUPTED):
            end_interrupted()
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Runs the chosen command."""
        try:
            return super().invoke(ctx)
        except typer.Exit as end:
            self._said = end.exit_code == INTERRUPTED
            raise
        except EOFError as error:  # typer would treat it as a Ctrl-D.
            raise ValueError(f"expected more bytes in a file, found its end: {error}") from error


def debug_first(words: list[str]) -> tuple[list[str], bool]:
    """Moves `--debug` to the front, where the group reads it; after `--`, it is only a text."""
    end = words.index("--") if "--" in words else len(words)
    if "--debug" not in words[:end]:
        return words, False
    return ["--debug", *(word for word in words[:end] if word != "--debug"), *words[end:]], True


def _report(error: Exception) -> None:
    if hasattr(error, "format_message"):  # Wrong usage.
        message = error.format_message()
        if not message:  # No command was given, and typer has printed the help.
            return
        if context := getattr(error, "ctx", None):
            message += f" See `{context.command_path} --help`."
    elif isinstance(error, OSError) and error.strerror:
        message = _of_the_system(error)
    elif isinstance(error, _EXPLAINED):
        message = str(error) or type(error).__name__
    else:
        first_line = str(error).partition("\n")[0]
        message = f"{type(error).__name__}: {first_line} (--debug shows the traceback)"
    echo(f"error: {' '.join(message.split())}", err=True)


def _of_the_system(error: OSError) -> str:
    where, closed = error.filename, error.errno == errno.EBADF
    if error.errno == errno.ENOSPC:  # `shutil` names the source first, but the copy is full.
        where = error.filename2 or where
    # Errors of the standard streams have no name, and neither has a full disk in a write.
    if _drop_output() and where is None:
        where = "standard output"
    elif where is None and closed:
        where = "standard input"
    name = "" if where is None else os.fspath(where)
    if closed:
        return f"{name} is closed"
    remedy = _REMEDIES.get(error.errno)
    text = f"{error.strerror}" + (f"; {remedy}" if remedy else "")
    return f"{name}: {text}" if name else text


def _drop_output() -> bool:
    """Whether standard output is broken; if so, redirects it, so that Python can exit quietly."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def note_interrupts() -> None:
    """Records each Ctrl-C, so that the command ends with 130 even if a library swallows it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # Else it is ignored.
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _interrupts.append(number)
    raise KeyboardInterrupt


def end_interrupted() -> NoReturn:
    """Ends the process with the exit code 130."""
    _drop_output()
    sys.stderr.write("interrupted\n")
    sys.exit(INTERRUPTED)


def open_standard_streams() -> None:
    """Opens closed standard streams on the null device, so that no other file gets their numbers.

    Reading from such an input or writing to such an output fails.
    """
    streams = (
        ("stdin", "r", os.O_WRONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_RDWR),
    )
    for number, (name, mode, flags) in enumerate(streams):
        if getattr(sys, name) is None:
            os.open(os.devnull, flags)  # Gets the lowest free number, which is this one.
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
