"""`use-st5 benchmark --throughput`: sentences a second by model, batch and length."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from use_st5.cli.measuring import measured
from use_st5.cli.output import print_table

if TYPE_CHECKING:
    from use_st5.footprint.throughput import ThroughputRecord


def measure_and_print(
    models: Sequence[str],
    output: Path,
    options: Mapping[str, Any],
    *,
    plots: bool,
    as_json: bool,
) -> None:
    """Measures, writes the record, its table and its plots, and prints the table or JSON."""
    from use_st5.footprint.throughput import measure_throughput
    from use_st5.footprint.throughput_figures import throughput_markdown, write_throughput_plots

    measured(
        measure_throughput,
        models,
        output / "throughput.json",
        options,
        markdown=throughput_markdown,
        draw=write_throughput_plots if plots else None,
        show=_print_json if as_json else _print,
    )


def _print(record: ThroughputRecord) -> None:
    from use_st5.footprint.throughput_figures import throughput_rows

    headings, cells = throughput_rows(record)
    print_table(headings, cells, title="sentences a second, from ids to vectors")


def _print_json(record: ThroughputRecord) -> None:
    typer.echo(json.dumps(dataclasses.asdict(record), ensure_ascii=False))
