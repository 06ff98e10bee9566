"""The plots of a report, on matplotlib's figures without its global state, and their colours."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure  # for the modules that draw

# Matplotlib's markers.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Text; rules, grids and frames; the background.
INK, LINE, PAGE = "#1f2328", "#d8dee4", "#ffffff"
# The models' colours: Okabe and Ito's palette ("Color Universal Design", 2008), told apart with
# every common kind of colour vision, without its yellow, which vanishes on white. Then they repeat.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8579a", "#c98500", "#3a9fdc", "#444b54")


def colour(position: int) -> str:
    """The colour of the model at a position."""
    return COLOURS[position % len(COLOURS)]


def marker(position: int) -> str:
    """Matplotlib's marker of the model at a position."""
    # Models that share a colour differ in their marker.
    return _MARKERS[(position + position // len(COLOURS)) % len(_MARKERS)]


@dataclass(frozen=True)
class Series:
    """The points of one model.

    Attributes:
        label: Its name in the legend.
        x: Values along the horizontal axis; NaN draws nothing.
        y: Values along the vertical axis, or empty where places are rows.
        spread: (lower, upper) ends of each point's interval; empty without intervals.
        model: The position of the model, which chooses colour and marker.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...] = ()
    spread: tuple[tuple[float, float], ...] = ()
    model: int = 0

    def style(self) -> dict[str, Any]:
        """Matplotlib's keywords for its markers."""
        label = plain(self.label, _LEGEND_CHARACTERS)
        return {"label": label, "color": colour(self.model), "marker": marker(self.model)}


def bars(labels: Sequence[str], series: Sequence[Series], axis: Axis) -> Figure:
    """Horizontal bars from zero with intervals, a row per label."""
    height = 0.8 / max(len(series), 1)
    figure, axes = _rows(labels, series, axis, 0.17 * len(series) + 0.12)
    handles = []
    for place, one in enumerate(series):
        offsets = [index - 0.4 + height * (place + 0.5) for index in range(len(labels))]
        handles.append(axes.barh(
            offsets, one.x, height * 0.9, label=plain(one.label, _LEGEND_CHARACTERS),
            color=colour(one.model), edgecolor=PAGE,
            linewidth=0,
        ))  # fmt: skip
        for offset, ends in zip(offsets, one.spread, strict=False):
            axes.plot(ends, (offset, offset), color=INK, linewidth=1.1)
    axes.axvline(0, color=INK, linewidth=0.8)
    return _legend(figure, handles)


# At 100 dots per inch a figure is nearly as wide as half a page on a desktop, and its text can be
# read where it shrinks to the width of a phone.
_INCHES = 4.8
_DOTS_PER_INCH = 220
_LABEL_CHARACTERS = 32
_LEGEND_CHARACTERS = 52
_LEGEND_CHARACTERS_OF_TWO = 23


@dataclass(frozen=True)
class Axis:
    """The names of a plot's axes.

    Attributes:
        x: Of the horizontal one.
        y: Of the vertical one.
        log: Whether the horizontal one is logarithmic.
        ends: Where the horizontal one ends; None: as the points need.
    """

    x: str
    y: str = ""
    log: bool = False
    ends: tuple[float, float] | None = None


def plain(text: str, characters: int) -> str:
    """The text, shortened, without what matplotlib takes for more than text."""
    if len(text) > characters:
        text = text[: characters - 1].rstrip() + "…"
    # A dollar sign starts a formula; a label that starts with an underscore stays out of legends.
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def dots(labels: Sequence[str], series: Sequence[Series], axis: Axis) -> Figure:
    """Dots, a row per label."""
    figure, axes = _rows(labels, series, axis, 0.21 if len(labels) > 12 else 0.28)
    handles = []
    for one in series:
        style = {"linestyle": "", "markersize": 5.5, **one.style()}
        handles += axes.plot(one.x, range(len(labels)), **style)
    return _legend(figure, handles)


def lines(series: Sequence[Series], axis: Axis, ticks: dict[float, str]) -> Figure:
    """Lines with markers; the ticks of the horizontal axis are named."""
    figure, axes = _figure(3.3 + _legend_height(series), axis)
    handles = []
    for one in series:
        style = {"markersize": 5.5, "linewidth": 1.6, **one.style()}
        handles += axes.plot(one.x, one.y, linestyle="-", **style)
        for x, ends in zip(one.x, one.spread, strict=False):
            axes.plot((x, x), ends, color=one.style()["color"], linewidth=1)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    return _legend(figure, handles)


def scatter(series: Sequence[Series], axis: Axis) -> Figure:
    """A point per series."""
    figure, axes = _figure(3.5 + _legend_height(series), axis)
    handles = []
    for one in series:
        handles += axes.plot(one.x, one.y, linestyle="", markersize=9, **one.style())
    axes.margins(0.15)
    return _legend(figure, handles)


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(_DOTS_PER_INCH)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    stream = io.BytesIO()
    # A plot has few colours: a palette of them takes a third of the bytes.
    image.quantize(128).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _rows(
    labels: Sequence[str], series: Sequence[Series], axis: Axis, row: float
) -> tuple[Figure, Axes]:
    """Axes with a row per label, the first on top."""
    texts = [_folded(label) for label in labels]
    lines = max(text.count("\n") + 1 for text in texts)
    height = max(row, 0.145 * lines + 0.07)
    figure, axes = _figure(height * len(labels) + 0.9 + _legend_height(series), axis)
    axes.set_yticks(range(len(labels)), texts, fontsize=9.5 if lines == 1 else 8.5)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    # A long plot is read from its top: the scale stands there too.
    axes.tick_params(axis="x", labeltop=len(labels) > 12)
    return figure, axes


def _figure(height: float, axis: Axis) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_INCHES, height), layout="constrained", facecolor=PAGE)
    axes = figure.add_subplot(facecolor=PAGE)
    if axis.log:
        axes.set_xscale("log")
    if axis.ends:
        axes.set_xlim(axis.ends)
    axes.set_xlabel(axis.x, color=INK)
    axes.set_ylabel(axis.y, color=INK)
    axes.tick_params(colors=INK, labelsize=9.5)
    axes.tick_params(color=LINE)
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_color(LINE)
    return figure, axes


def _folded(label: str) -> str:
    """The label's lines, long ones folded."""
    lines = plain(label, 4 * _LABEL_CHARACTERS).split("\n")
    return "\n".join(textwrap.fill(line, _LABEL_CHARACTERS) for line in lines)


def _legend_columns(labels: Sequence[str]) -> int:
    return 2 if len(labels) > 1 and max(map(len, labels)) <= _LEGEND_CHARACTERS_OF_TWO else 1


def _legend_height(series: Sequence[Series]) -> float:
    """In inches."""
    return 0.22 * math.ceil(len(series) / _legend_columns([one.label for one in series]))


def _legend(figure: Figure, handles: list[Any]) -> Figure:
    """The names above the plot."""
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=_legend_columns([handle.get_label() for handle in handles]),
        frameon=False,
        labelcolor=INK,
        fontsize=9.5,
        borderaxespad=0.2,
    )
    return figure
