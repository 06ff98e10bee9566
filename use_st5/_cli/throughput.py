"""`use-st5 benchmark --throughput`: sentences a second by model, batch and length."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from use_st5._cli.measuring import measuring
from use_st5._cli.output import print_table, say
from use_st5._files import atomic_path


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
    from use_st5.footprint.throughput_figures import (
        throughput_markdown,
        throughput_rows,
        write_throughput_plots,
    )

    path = output / "throughput.json"
    with measuring(path) as on_cell:
        record = measure_throughput(
            models,
            path,
            **options,
            on_cell=on_cell,
            command=shlex.join(["use-st5", *sys.argv[1:]]),
        )
    with atomic_path(output / "throughput.md") as temporary:
        temporary.write_text(throughput_markdown(record), encoding="utf-8")
    written = [path, output / "throughput.md"]
    if plots:
        written += write_throughput_plots(record, output)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(record), ensure_ascii=False))
    else:
        headings, cells = throughput_rows(record)
        print_table(headings, cells, title="sentences a second, from ids to vectors")
    say(f"written: {', '.join(map(str, written))}")
