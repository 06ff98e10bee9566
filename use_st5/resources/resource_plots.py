"""Time and memory against the length of a text, as in Figure 2 of the USE paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from use_st5._files import atomic_path
from use_st5._imports import require
from use_st5.evaluation.report.charts import Axis, Series, lines, plain, png
from use_st5.evaluation.report.theme import LIGHT
from use_st5.resources.quantity import QUANTITIES, Quantity
from use_st5.resources.resource_record import ResourceRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Labels of lengths nearer to each other than this share of the axis would overlap.
_TICK_DISTANCE = 0.07
_LIMIT_CHARACTERS = 32


def write_plots(record: ResourceRecord, folder: str | os.PathLike[str]) -> list[Path]:
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


def draw(record: ResourceRecord, device: str, quantity: Quantity) -> Figure | None:
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
    record: ResourceRecord, device: str, model: str, quantity: Quantity, place: int
) -> Series:
    points = record.curve(device, model)
    found = {point.length: record.values(point, quantity) for point in points}
    found = {length: values for length, values in found.items() if values}
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


def _mark_limits(axes: Axes, record: ResourceRecord, device: str) -> None:
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
