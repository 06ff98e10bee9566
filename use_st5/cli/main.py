"""The command line: `use-st5 embed`, `similarity`, `search`, `evaluate`, `train` and others.

The commands are the other modules of this package. Nothing imports TensorFlow before a command
needs it.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import Annotated, Any

import typer

import use_st5
from use_st5.cli import (
    benchmark,
    bitext,
    cache,
    classify,
    convert,
    data,
    doctor,
    embed,
    evaluate,
    export,
    index,
    info,
    mine,
    push,
    rank,
    report,
    search,
    serve,
    similarity,
    train,
)
from use_st5.cli.output import echo, manual, say
from use_st5.cli.terminal import (
    OneLineErrors,
    debug_first,
    end_interrupted,
    note_interrupts,
    open_standard_streams,
)
from use_st5.hub.bundled import bundled_names
from use_st5.io.progress_lines import progress_lines

_HELP = manual(
    f"""Universal sentence encoders: embed, compare, evaluate, train, export.

    Bundled English models: {", ".join(bundled_names())}. They need no network, no key and no
    download. Where a command takes a model, it takes the name of a bundled one, a folder, or the
    name of a model of a hub, such as hf://sentence-transformers/all-MiniLM-L6-v2, which is
    downloaded once.

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
app.command("rank", help=rank.HELP)(rank.rank)
app.command("index", help=index.HELP)(index.index)
app.command("search", help=search.HELP)(search.search)
app.command("evaluate", help=evaluate.HELP)(evaluate.evaluate)
app.command("benchmark", help=benchmark.HELP)(benchmark.benchmark)
app.command("report", help=report.HELP)(report.report)
app.command("data", help=data.HELP)(data.data)
app.command("train", help=train.HELP)(train.train)
app.command("classify", help=classify.HELP)(classify.classify)
app.command("mine", help=mine.HELP)(mine.mine)
app.command("bitext", help=bitext.HELP)(bitext.bitext)
app.command("export", help=export.HELP)(export.export)
app.command("convert", help=convert.HELP)(convert.convert)
app.command("serve", help=serve.HELP)(serve.serve)
app.command("info", help=info.HELP)(info.info)
app.command("push", help=push.HELP)(push.push)
app.command("cache", help=cache.HELP)(cache.cache)
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


def _say_warning(message: Warning | str, *_place: Any, **_options: Any) -> None:
    """Prints a warning as one line, without the place in the code."""
    say(str(message))


def main() -> None:
    """Runs the command line; `use_st5.__main__` calls it."""
    open_standard_streams()
    note_interrupts()
    if debug_first(sys.argv[1:])[1]:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0")
    warnings.showwarning = _say_warning
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
