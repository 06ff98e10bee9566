"""The command group whose errors are one line and whose exit codes are right."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

FAILURE = 1
USAGE = 2
INTERRUPTED = 130

# Raised on purpose, here or in a library, with a message that speaks for itself. Anything else is
# reported with its type, because its message alone ("'text'") would say nothing.
_SPOKEN = (ValueError, OSError, ImportError)


class OneLineErrors(TyperGroup):
    """A command group that reports each error as one line on standard error.

    Exit codes: 0 done, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C. `--debug` may stand
    anywhere on the line and shows the traceback as well.
    """

    def main(
        self,
        args: list[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line `args` (default: `sys.argv[1:]`) and exits with its code."""
        arguments, debug = _debug_first(list(sys.argv[1:] if args is None else args))
        if not standalone_mode:
            return super().main(arguments, prog_name, standalone_mode=False, **extra)
        try:
            result = super().main(arguments, prog_name, standalone_mode=False, **extra)
        except typer.Abort:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            _leave_closed_pipe()
        except Exception as error:
            if debug:
                traceback.print_exc()
            _report(error)
            sys.exit(_exit_code(error))
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Runs the chosen command; Ctrl-C ends it with one word instead of a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from interrupt


def _debug_first(arguments: list[str]) -> tuple[list[str], bool]:
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
    elif isinstance(error, _SPOKEN):
        message = str(error) or type(error).__name__
    else:
        first_line = (str(error).splitlines() or [""])[0]
        message = f"{type(error).__name__}: {first_line} (--debug shows where)"
    typer.echo(f"error: {' '.join(message.split())}", err=True)


def _leave_closed_pipe() -> NoReturn:
    """The reader (`head`) went away: a quiet end, and no second error when Python flushes."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(FAILURE)
