"""The figures as rows of text, for terminals and for Markdown, and as plots."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.evaluation.report.charts import LIGHT, Axis, Series, lines, plain, png
from use_st5.footprint.quantity import IDS_TIME, MEMORY, QUANTITIES, TEXT_TIME, Quantity
from use_st5.footprint.record import FootprintPoint, FootprintRecord

COLUMNS = (
    "words",
    "model",
    "ids",
    TEXT_TIME.title,
    "ratio",
    IDS_TIME.title,
    "ratio",
    "working memory, MB",
    MEMORY.title,
    "ratio",
)
UNKNOWN = "unknown"


def rows(record: FootprintRecord, device: str) -> list[tuple[str, ...]]:
    """A row for each length and model on a device: medians, quartiles, ratios to the first model.

    The time from a text that the model cuts is marked so.
    """
    order = {model.name: place for place, model in enumerate(record.models)}
    points = [point for point in record.points if point.device == device]
    points.sort(key=lambda point: (point.length, order[point.model]))
    return [_row(record, point) for point in points]


def markdown(record: FootprintRecord) -> str:
    """The tables of all devices and the crossing points, with what the figures mean."""
    parts = ["# Compute time and memory against the length of a text", _preface(record)]
    if note := memory_note(record):
        parts.append(note)
    for device in record.devices:
        name = record.gpu if device == "gpu" else record.setting["processor"]
        parts += [f"## {device.upper()}: {name}", markdown_table(COLUMNS, rows(record, device))]
    headings, cells = crossing_table(record)
    if cells:
        parts += ["## Crossing points", markdown_table(headings, cells)]
    return "\n\n".join(parts) + "\n"


def memory_note(record: FootprintRecord) -> str:
    """Why memory is unknown; empty where it is known everywhere."""
    if all(each is not None for point in record.points for each in point.working_bytes):
        return ""
    return (
        "Memory is unknown where TensorFlow does not count it: on a processor only the allocator "
        "of its oneDNN does. Write TF_ENABLE_ONEDNN_OPTS=1 before the command to switch that on; "
        "it may change the times, too."
    )


def crossing_table(record: FootprintRecord) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows of the crossing points; no row where nothing is known."""
    headings = ("device", "quantity", "model", f"against {record.models[0].name}")
    return headings, [tuple(each.values()) for each in record.crossings()]


def _preface(record: FootprintRecord) -> str:
    setting = record.setting
    models = [
        (
            model.name,
            f"{model.parameters:,}",
            f"{model.parameter_bytes / 1e6:.1f}",
            "none" if model.max_length is None else str(model.max_length),
        )
        for model in record.models
    ]
    headings = ("model", "parameters", "parameters, MB", "tokens read at most")
    return (
        f"Batches of {setting['batch_size']}, {setting['threads']} thread(s), TensorFlow "
        f"{record.versions['tensorflow']}. Milliseconds a text, median (quartiles); ratios to "
        f"{record.models[0].name}. From a text a model reads no more tokens than its limit (cut); "
        "from ids nothing is cut. Working memory: the peak of TensorFlow's tensors in a call on "
        "ids above the loaded model.\n\n" + markdown_table(headings, models)
    )


def _row(record: FootprintRecord, point: FootprintPoint) -> tuple[str, ...]:
    model = record.model(point.model)
    cut = model.max_length is not None and point.tokens > model.max_length
    working = memory = UNKNOWN
    if (values := record.values(point, MEMORY)) is not None:
        median = statistics.median(values)
        working = three_digits((median - model.parameter_bytes) / 1e6)
        memory = three_digits(MEMORY.per_unit * median)
    return (
        str(point.length),
        point.model,
        str(point.tokens),
        _spread(record, point, TEXT_TIME) + (" cut" if cut else ""),
        _ratio(record, point, TEXT_TIME),
        _spread(record, point, IDS_TIME),
        _ratio(record, point, IDS_TIME),
        working,
        memory,
        _ratio(record, point, MEMORY),
    )


def _spread(record: FootprintRecord, point: FootprintPoint, quantity: Quantity) -> str:
    values = quantity.per_unit * np.asarray(record.values(point, quantity))
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{three_digits(middle)} ({three_digits(low)}-{three_digits(high)})"


def _ratio(record: FootprintRecord, point: FootprintPoint, quantity: Quantity) -> str:
    ratio = record.ratio(point, quantity)
    return UNKNOWN if ratio is None else three_digits(ratio)


def three_digits(value: float) -> str:
    """Three digits or so."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def markdown_table(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Labels of lengths nearer to each other than this share of the axis would overlap.
_TICK_DISTANCE = 0.07
_LIMIT_CHARACTERS = 32


def write_plots(record: FootprintRecord, folder: str | os.PathLike[str]) -> list[Path]:
    """Draws every quantity on every device that was measured.

    Args:
        record: The measurements.
        folder: Where to write `text_time_cpu.png`, `ids_time_cpu.png`, `memory_cpu.png` and those
            of the GPU.

    Returns:
        The paths of what was written.

    Raises:
        ImportError: matplotlib is missing.
    """
    require("matplotlib", "plots")
    written = []
    for device in record.devices:
        for quantity in QUANTITIES:
            figure = draw(record, device, quantity)
            if figure is None:
                continue
            path = Path(folder, f"{quantity.name}_{device}.png")
            with atomic_path(path) as temporary:
                temporary.write_bytes(png(figure))
            written.append(path)
    return written


def draw(record: FootprintRecord, device: str, quantity: Quantity) -> Figure | None:
    """A line per model: medians with quartiles; None where nothing is known.

    A dotted vertical line in a model's colour stands where it stops reading a text.
    """
    series = [
        one
        for place, model in enumerate(record.models)
        if (one := _series(record, device, model.name, quantity, place)).x
    ]
    if not series:
        return None
    name = record.gpu if device == "gpu" else record.setting["processor"]
    lengths = sorted({length for one in series for length in one.x})
    axis = Axis(x=f"words ({device.upper()}: {name})", y=quantity.title)
    figure = lines(LIGHT, series, axis, _ticks(lengths))
    axes = figure.axes[0]
    axes.set_ylim(bottom=0)
    _mark_limits(axes, record, device)
    return figure


def _series(
    record: FootprintRecord, device: str, model: str, quantity: Quantity, place: int
) -> Series:
    curve = ((each.length, record.values(each, quantity)) for each in record.curve(device, model))
    found = {length: values for length, values in curve if values}
    quartiles = [
        quantity.per_unit * np.percentile(values, [25, 50, 75]) for values in found.values()
    ]
    return Series(
        label=model,
        x=tuple(found),
        y=tuple(float(middle) for _, middle, _ in quartiles),
        spread=tuple((float(low), float(high)) for low, _, high in quartiles),
        model=place,
    )


def _ticks(lengths: list[float]) -> dict[float, str]:
    """The longest length, and shorter ones as far as their labels have room."""
    chosen = [lengths[-1]]
    room = _TICK_DISTANCE * (lengths[-1] - lengths[0])
    for length in reversed(lengths[:-1]):
        if chosen[-1] - length >= room:
            chosen.append(length)
    return {length: f"{length:g}" for length in reversed(chosen)}


def _mark_limits(axes: Axes, record: FootprintRecord, device: str) -> None:
    limits: dict[float, list[str]] = {}
    for place, model in enumerate(record.models):
        curve = record.curve(device, model.name)
        tokens = [point.tokens for point in curve]
        if model.max_length is None or not tokens or tokens[-1] <= model.max_length:
            continue
        words = float(np.interp(model.max_length, tokens, [point.length for point in curve]))
        axes.axvline(words, color=LIGHT.colour(place), linestyle=":", linewidth=1.2)
        limits.setdefault(words, []).append(plain(model.name, _LIMIT_CHARACTERS))
    for words, names in limits.items():
        axes.annotate(
            f"{', '.join(names)}: texts are cut from here on",
            (words, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="left" if words < np.mean(axes.get_xlim()) else "right",
            fontsize=7.5,
            color=LIGHT.muted,
        )
