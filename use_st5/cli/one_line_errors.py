"""The command group whose errors are one line and whose exit codes are right."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from use_st5.cli.interrupts import INTERRUPTED, drop_output, end_interrupted, interrupted
from use_st5.cli.renamed_options import with_new_names

FAILURE = 1
USAGE = 2

# Raised on purpose, here or in a library, with a message that speaks for itself. Anything else is
# reported with its type, because its message alone ("'text'") would say nothing.
_SPOKEN = (ValueError, OSError, ImportError)

_REMEDIES: dict[int | None, str] = {
    errno.ENOSPC: "make room there, or write elsewhere",
    errno.EDQUOT: "make room there, or write elsewhere",
    errno.EROFS: "write elsewhere",
    errno.EACCES: "ask for the right to it, or choose another path",
}


class OneLineErrors(TyperGroup):
    """A command group that reports each error as one line on standard error.

    Exit codes: 0 done, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C. `--debug` may stand
    anywhere on the line and shows the traceback as well. After a Ctrl-C that `hear_every_interrupt`
    noted, every end is an interruption, whatever a library made of it.
    """

    def main(  # type: ignore[override]  # the rest of the options goes on by keywords
        self,
        args: list[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line `args` (default: `sys.argv[1:]`) and exits with its code."""
        arguments, debug = debug_first(list(sys.argv[1:] if args is None else args))
        if not standalone_mode:
            return super().main(arguments, prog_name, standalone_mode=False, **extra)
        self._said = False
        try:
            arguments = with_new_names(arguments)
            result = super().main(arguments, prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
        except typer.Abort:
            if interrupted():
                end_interrupted()
            sys.exit(INTERRUPTED)
        except BrokenPipeError:  # The reader (`head`) went away: a quiet end.
            drop_output()
            sys.exit(INTERRUPTED if interrupted() else FAILURE)
        except Exception as error:
            if debug:
                traceback.print_exc()
            if interrupted():
                end_interrupted()
            _report(error)
            sys.exit(_exit_code(error))
        # Swallowed, and what was to follow shall not; or typer alone noticed, which says nothing.
        if not self._said and (interrupted() or result == INTERRUPTED):
            end_interrupted()
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Runs the chosen command; Ctrl-C ends it with one word instead of a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            typer.echo("interrupted", err=True)
            self._said = True
            raise typer.Exit(INTERRUPTED) from interrupt
        except typer.Exit as end:  # A command that was interrupted has said what is kept.
            self._said = end.exit_code == INTERRUPTED
            raise
        except EOFError as error:  # For typer it is a Ctrl-D at a question, and no error.
            raise ValueError(f"a file ends too early: {error}") from error


def debug_first(arguments: list[str]) -> tuple[list[str], bool]:
    """Moves `--debug` to the front, where the group reads it; after `--` it is a text."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--debug" not in options:
        return arguments, False
    rest = [argument for argument in options if argument != "--debug"]
    return ["--debug", *rest, *arguments[len(options) :]], True


def _exit_code(error: Exception) -> int:
    # Usage errors carry 2; the class itself moved between the releases of typer.
    return getattr(error, "exit_code", FAILURE)


def _report(error: Exception) -> None:
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        message = format_message()
        if not message:  # No command was given, and the help has been printed instead.
            return
        context = getattr(error, "ctx", None)
        if context is not None:
            message += f" See `{context.command_path} --help`."
    elif isinstance(error, OSError) and error.strerror:
        message = _of_the_system(error)
    elif isinstance(error, _SPOKEN):
        message = str(error) or type(error).__name__
    else:
        first_line = (str(error).splitlines() or [""])[0]
        message = f"{type(error).__name__}: {first_line} (--debug shows where)"
    typer.echo(f"error: {' '.join(message.split())}", err=True)


def _of_the_system(error: OSError) -> str:
    """Where it happened, what, and what to do, of an error that the operating system reports."""
    where, closed = error.filename, error.errno == errno.EBADF
    if where is None:  # Files have names; of the input nothing but its absence is reported so.
        where = "standard output" if drop_output() or not closed else "standard input"
    if closed:
        return f"{where} is closed"
    remedy = _REMEDIES.get(error.errno)
    return f"{os.fspath(where)}: {error.strerror}" + (f"; {remedy}" if remedy else "")


def open_standard_streams() -> None:
    """Opens those of the three that were closed, so that no other file gets their numbers.

    Reading from such an input and writing to such an output fails; standard error hears nothing.
    """
    for number, name, mode, flags in (
        (0, "stdin", "r", os.O_WRONLY),
        (1, "stdout", "w", os.O_RDONLY),
        (2, "stderr", "w", os.O_RDWR),
    ):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
