"""`use-st5 benchmark`: compute time and memory against the length of a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from use_st5._bundled import bundled_names
from use_st5._imports import require
from use_st5.cli.files import sole_folder
from use_st5.cli.measuring import measured
from use_st5.cli.output import manual, print_table, say
from use_st5.cli.throughput import measure_and_print

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
    model, or one that changed, all are measured anew: ratios need visits side by side.

    With --throughput it measures sentences a second instead, by model, batch and length, as Figure
    5 of the Sentence-T5 paper has it: MODELS may be checkpoints, too, or fresh:t5_base and other
    named shapes, whose weights are drawn; --lengths counts tokens, and --batch-sizes takes several.
    It runs on the device that Keras runs on, with KERAS_BACKEND=jax on a TPU, too. The folder gets
    throughput.json, throughput.md and a plot for each length.""",
    "use-st5 benchmark",
    "use-st5 benchmark use_dan_en path/to/my_model --lengths 10,100,500 --repeats 20",
    "use-st5 benchmark --batch-size 32 --threads 2 --device cpu --out benchmark_32",
    "use-st5 benchmark --throughput fresh:t5_small fresh:t5_base --batch-sizes 1,32,128",
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
    throughput: Annotated[
        bool, typer.Option("--throughput", help="Sentences a second by batch and length.")
    ] = False,
    batch_sizes: Annotated[
        str | None, typer.Option(help="Of --throughput, with commas. Default: 1,8,32,128.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Of --throughput: bfloat16 or mixed_bfloat16.")
    ] = None,
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
    if plots:
        require("matplotlib", "plots")
    if throughput:
        shapes = _given("tokens", lengths, "--lengths")
        shapes |= _given("batch_sizes", batch_sizes, "--batch-sizes")
        options = {"dtype": dtype, "threads": threads, **shapes}
        with sole_folder(output):
            measure_and_print(
                models or bundled_names(), output, options, plots=plots, as_json=as_json
            )
        return
    if batch_sizes or dtype:
        raise typer.BadParameter("--batch-sizes and --dtype are of --throughput: give it, too.")
    options = {"batch_size": batch_size, "threads": threads, "repeats": repeats}
    options |= {"device": device.value, **_given("lengths", lengths, "--lengths")}
    with sole_folder(output):
        _measure(models or bundled_names(), output, options, plots=plots, as_json=as_json)


def _measure(
    models: Sequence[str], output: Path, options: Mapping[str, Any], *, plots: bool, as_json: bool
) -> None:
    """Measures, writes the record, its table and its plots, and prints the tables or JSON."""
    from use_st5.footprint.figures import markdown, write_plots
    from use_st5.footprint.measure import measure_footprint

    measured(
        measure_footprint,
        models,
        output / "resources.json",
        options,
        markdown=markdown,
        draw=write_plots if plots else None,
        show=_print_json if as_json else _print,
    )


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


def _print_json(record: FootprintRecord) -> None:
    typer.echo(json.dumps(record.content(), ensure_ascii=False))
