"""`use-st5 benchmark`: compute time and memory against the length of a text."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from use_st5._bundled import bundled_names
from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.cli.files import sole_folder
from use_st5.cli.output import manual, print_table, say

if TYPE_CHECKING:
    from use_st5.footprint.record import FootprintRecord

HELP = manual(
    """Measure compute time and memory against the length of a text (USE paper, Figure 2).

    MODELS are names of bundled models or folders of models that use_st5 exported; by default all
    bundled ones. Ratios, and the lengths at which one costs more than another, are to the first.

    Each model has a process of its own; all are visited in turn, at one length after the other,
    --repeats times over, so that a neighbour's load meets all alike. The table has medians and
    quartiles, in milliseconds a text; warm-ups are not counted.

    Two times: text to vector is all that encode does, and a model that reads 128 tokens cuts there,
    which hides what longer texts would cost; ids to vector cuts nothing.

    Working memory is the peak of TensorFlow's tensors in one call on ids above the loaded model,
    by TensorFlow's own count (on a processor: that of oneDNN, blocks of 256 KB and more), and so
    leaves out what Python and TensorFlow take themselves. The model's parameters are added to it,
    as in the paper.

    The folder gets resources.json, resources.md and the plots (PNG; extra plots). What is measured
    is kept: an interrupted run goes on, and more --repeats or --lengths add to it. With another
    model, or one that changed, all are measured anew: ratios need visits side by side.""",
    "use-st5 benchmark",
    "use-st5 benchmark use_dan_en path/to/my_model --lengths 10,100,500 --repeats 20",
    "use-st5 benchmark --batch-size 32 --threads 2 --device cpu --out benchmark_32",
)


class DeviceOption(StrEnum):
    """The values that `--device` takes."""

    ALL = "all"
    CPU = "cpu"
    GPU = "gpu"


def benchmark(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODELS]...", help="Names or folders. Default: the bundled ones."),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", "-l", help="Words, with commas. Default: 11 from 10 to 512."),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts in one call of a model.")] = 1,
    throughput: Annotated[bool, typer.Option("--throughput", hidden=True)] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each model (of TensorFlow).")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Visits to each model at each length.")] = 10,
    device: Annotated[
        DeviceOption, typer.Option(help="all: the CPU, and a GPU if there is one.")
    ] = DeviceOption.ALL,
    output: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path(
        "benchmark"
    ),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the plots.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measures compute time and memory against the length of a text."""
    if throughput:
        raise typer.BadParameter(
            "is a script of the repository now: python -m experiments.sentence_t5.figure_5.",
            param_hint="--throughput",
        )
    if plots:
        require("matplotlib", "plots")
    options: dict[str, Any] = {"batch_size": batch_size, "threads": threads, "repeats": repeats}
    options |= {"device": device.value, **_given("lengths", lengths, "--lengths")}
    with sole_folder(output):
        _measure(models or bundled_names(), output, options, plots=plots, as_json=as_json)


def _measure(
    models: Sequence[str], output: Path, options: Mapping[str, Any], *, plots: bool, as_json: bool
) -> None:
    """Measures, writes the record, its table and its plots, and prints the tables or JSON."""
    from use_st5.footprint.figures import markdown, write_plots
    from use_st5.footprint.measure import measure_footprint

    path = output / "resources.json"
    with _measuring(path) as on_visit:
        command = shlex.join(["use-st5", *sys.argv[1:]])
        record = measure_footprint(models, path, **options, on_visit=on_visit, command=command)
    table = path.with_suffix(".md")
    with atomic_path(table) as temporary:
        temporary.write_text(markdown(record), encoding="utf-8")
    drawn = write_plots(record, output) if plots else []
    if as_json:
        typer.echo(json.dumps(record.content(), ensure_ascii=False))
    else:
        _print(record)
    say(f"written: {', '.join(map(str, [path, table, *drawn]))}")


@contextmanager
def _measuring(path: Path) -> Iterator[Callable[[int, int], None]]:
    """A bar or lines of what is measured; Ctrl-C says what is kept in a file."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from use_st5._progress_bars import ProgressBars

    terminal = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    reached = [0, 0]
    try:
        with ProgressBars(
            *columns, console=terminal, transient=True, disable=not terminal.is_terminal
        ) as bars:
            bar = bars.add_task("measuring", total=None)

            def on_visit(done: int, total: int) -> None:
                reached[:] = done, total
                bars.update(bar, completed=done, total=total)

            yield on_visit
    except KeyboardInterrupt as interrupt:
        done, total = reached
        kept = f"{done} of {total} measurements are kept in {path}; the same command goes on"
        say(f"interrupted: {kept if done else 'nothing was measured yet'}")
        raise typer.Exit(130) from interrupt


def _given(name: str, numbers: str | None, option: str) -> dict[str, list[int]]:
    """The numbers of an option by the name that the measurement has for them, if there are any."""
    if numbers is None:
        return {}
    parts = [part.strip() for part in numbers.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise typer.BadParameter(
            f"expected numbers above 0, such as 10,100,500, received {numbers!r}.",
            param_hint=option,
        )
    return {name: [int(part) for part in parts]}


def _print(record: FootprintRecord) -> None:
    from use_st5.footprint.figures import COLUMNS, crossing_table, memory_note, rows

    for device in record.devices:
        print_table(COLUMNS, rows(record, device), title=device.upper())
    headings, cells = crossing_table(record)
    if cells:
        print_table(headings, cells, title="crossing points")
    if note := memory_note(record):
        say(note)
