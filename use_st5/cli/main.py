"""The command line: `use-st5 embed`, `similarity`, `search`, `evaluate`, `train` and others.

The commands are the other modules of this package. Nothing imports TensorFlow before a command
needs it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import traceback
import warnings
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import use_st5
from use_st5.cli import (
    benchmark,
    classify,
    cluster,
    convert,
    distill,
    doctor,
    duplicates,
    embed,
    evaluate,
    export,
    hub,
    info,
    mine,
    pairs,
    report,
    search,
    serve,
    similarity,
    sweep,
    train,
)
from use_st5.cli.output import echo, manual, say
from use_st5.hub.model_names import bundled_names
from use_st5.io.progress import progress_lines

INTERRUPTED = 130
# The Ctrl-Cs of this process, because Keras and destructors may swallow the exception.
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
        words, debug = _debug_first(list(sys.argv[1:] if args is None else args))
        code = None
        try:
            code = super().main(words, prog_name, **{**extra, "standalone_mode": False})
            sys.stdout.flush()
        except BrokenPipeError:  # The reader (`head`) has ended, so this command ends silently.
            _drop_output()
            code = INTERRUPTED if _interrupts else 1
        except Exception as error:
            if debug:
                traceback.print_exc()
            if not _interrupts:
                _report(error)
                # Usage errors have the code 2; their class differs between releases of typer.
                code = getattr(error, "exit_code", 1)
        if _interrupts and code is None:
            end_interrupted()
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Runs the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            end_interrupted()
        except EOFError as error:  # typer would treat it as a Ctrl-D.
            raise ValueError(f"expected more bytes in a file, found its end: {error}") from error


def _debug_first(words: list[str]) -> tuple[list[str], bool]:
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
        is_full = error.errno == errno.ENOSPC  # `shutil` names the source first.
        name = (is_full and error.filename2) or error.filename
        if _drop_output() and name is None:
            name = "standard output"
        message = f"{os.fspath(name)}: " if name is not None else ""
        message += error.strerror
    elif isinstance(error, (ValueError, OSError, ImportError)):
        message = str(error) or type(error).__name__
    else:
        first_line = str(error).partition("\n")[0]
        message = f"{type(error).__name__}: {first_line} (--debug shows the traceback)"
    echo(f"error: {' '.join(message.split())}", err=True)


def _drop_output() -> bool:
    """Whether standard output is broken; if so, redirects it, so that Python can exit quietly."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _interrupts.append(number)
    raise KeyboardInterrupt


def end_interrupted() -> NoReturn:
    """Ends the process with the exit code 130."""
    _drop_output()
    sys.stderr.write("interrupted\n")
    sys.exit(INTERRUPTED)


_HELP = manual(
    f"""Universal sentence encoders: embed, compare, evaluate, train, export.

    Bundled English models: {", ".join(bundled_names())}. They need no network, no key and no
    download. A command's model is the name of a bundled one, a folder, or the name of a model on a
    hub, such as hf://sentence-transformers/all-MiniLM-L6-v2, which is downloaded once.

    [bold]Exit codes[/bold]: 0 done, 1 failure, 2 wrong usage, 130 interrupted by Ctrl-C. An error
    is one line on standard error.""",
    "use-st5 embed sentences.txt -o vectors.npy",
    'use-st5 similarity "How old are you?" "What is your age?"',
    "use-st5 doctor",
)

app = typer.Typer(
    name="use-st5",
    cls=OneLineErrors,
    help=_HELP,
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("embed", help=embed.HELP)(embed.embed)
app.command("similarity", help=similarity.HELP)(similarity.similarity)
app.command("rank", help=search.RANK_HELP)(search.rank)
app.command("duplicates", help=duplicates.HELP)(duplicates.duplicates)
app.command("cluster", help=cluster.HELP)(cluster.cluster)
app.command("index", help=search.INDEX_HELP)(search.index)
app.command("search", help=search.HELP)(search.search)
app.command("evaluate", help=evaluate.HELP)(evaluate.evaluate)
app.command("benchmark", help=benchmark.HELP)(benchmark.benchmark)
app.command("report", help=report.HELP)(report.report)
app.command("data", help=evaluate.DATA_HELP)(evaluate.show_data)
app.command("train", help=train.HELP)(train.train)
app.command("sweep", help=sweep.HELP)(sweep.sweep)
app.command("classify", help=classify.HELP)(classify.classify)
app.command("pairs", help=pairs.HELP)(pairs.pairs)
app.command("distill", help=distill.HELP)(distill.distill)
app.command("mine", help=mine.HELP)(mine.mine)
app.command("bitext", help=mine.BITEXT_HELP)(mine.bitext)
app.command("export", help=export.HELP)(export.export)
app.command("convert", help=convert.HELP)(convert.convert)
app.command("serve", help=serve.HELP)(serve.serve)
app.command("info", help=info.HELP)(info.info)
app.command("push", help=hub.PUSH_HELP)(hub.push)
app.command("cache", help=hub.CACHE_HELP)(hub.cache)
app.command("doctor", help=doctor.HELP)(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(use_st5.__version__)
        raise typer.Exit


@app.callback()
def _options(
    _debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error. Works anywhere on the line."),
    ] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line; `use_st5.__main__` calls it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # Else a file that is opened later gets its number.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # Else it is ignored.
        signal.signal(signal.SIGINT, _interrupt)
    if _debug_first(sys.argv[1:])[1]:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0")
    # A warning is one line, without the place in the code.
    warnings.showwarning = lambda message, *_, **__: say(str(message))
    name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        # Shows a line if a command prints nothing for ten seconds.
        with progress_lines(lambda: f"use-st5 {name} is running"):
            app(prog_name="use-st5")
    except KeyboardInterrupt:  # Before the command began, or after its end.
        end_interrupted()
    finally:  # A Ctrl-C from here on ends the process without a traceback.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
