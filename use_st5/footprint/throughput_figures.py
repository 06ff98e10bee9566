"""Sentences a second as tables and as plots."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.evaluation.report.charts import LIGHT, Axis, Series, lines, png
from use_st5.footprint.figures import markdown_table, three_digits
from use_st5.footprint.throughput import ThroughputRecord

TOO_LARGE = "no room"


def throughput_rows(record: ThroughputRecord) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: a row for each model and length, a column for each size of batches."""
    sizes = sorted({speed.batch_size for speed in record.speeds})
    known = {speed.cell: speed.sentences_per_second for speed in record.speeds}
    headings = ["model", "parameters", "tokens", *(f"batch of {size}" for size in sizes)]
    cells = [
        [
            name,
            f"{record.parameters[name] / 1e6:,.1f} M",
            str(tokens),
            *(
                _number(known[name, tokens, size]) if (name, tokens, size) in known else ""
                for size in sizes
            ),
        ]
        for name in record.parameters
        for tokens in _lengths(record)
        if any(speed.cell[:2] == (name, tokens) for speed in record.speeds)
    ]
    return headings, cells


def throughput_markdown(record: ThroughputRecord) -> str:
    """The table, with what it was measured on."""
    setting = record.setting
    threads = setting["threads"] or "all"
    headings, cells = throughput_rows(record)
    return "\n".join(
        (
            "# Sentences a second, from ids to vectors",
            "",
            f"On {setting['platform']} with {setting['backend']} "
            f"{setting['versions'][setting['backend']]}, {setting['dtype']}; threads: {threads} of "
            f"{setting['cores']} cores.",
            "",
            markdown_table(headings, cells),
            "",
        )
    )


def write_throughput_plots(record: ThroughputRecord, folder: str | os.PathLike[str]) -> list[Path]:
    """Draws a picture for each length, `throughput_128.png` and so on; gives their paths.

    Raises:
        ImportError: matplotlib is missing.
    """
    require("matplotlib", "plots")
    written = []
    for tokens in _lengths(record):
        path = Path(folder, f"throughput_{tokens}.png")
        series = list(_series(record, tokens))
        sizes = sorted({size for one in series for size in one.x})
        axis = Axis(x="sentences in a batch", y=f"sentences of {tokens} tokens a second", log=True)
        figure = lines(LIGHT, series, axis, {size: f"{size:g}" for size in sizes})
        figure.axes[0].set_yscale("log")
        with atomic_path(path) as temporary:
            temporary.write_bytes(png(figure))
        written.append(path)
    return written


def _series(record: ThroughputRecord, tokens: int) -> Iterator[Series]:
    for place, name in enumerate(record.parameters):
        points = sorted(
            (float(speed.batch_size), speed.sentences_per_second)
            for speed in record.speeds
            if speed.cell[:2] == (name, tokens) and speed.sentences_per_second is not None
        )
        if points:
            x, y = zip(*points, strict=True)
            yield Series(label=name, x=x, y=y, model=place)


def _lengths(record: ThroughputRecord) -> list[int]:
    return sorted({speed.tokens for speed in record.speeds})


def _number(speed: float | None) -> str:
    return TOO_LARGE if speed is None else three_digits(speed)
