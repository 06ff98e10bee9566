"""Plots of similarities, scores and training runs; needs matplotlib (extra `plots`)."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from use_st5._imports import require
from use_st5.io.files import atomic_path
from use_st5.io.progress import without_controls

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

__all__ = ["interval_plot", "similarity_heatmap", "sweep_scores", "training_curves"]

# Row labels have two lines; the rotated column labels have one.
_ROW_CHARACTERS = 56
_COLUMN_CHARACTERS = 28
# Up to this number of rows, the cells are large and show their value.
_LARGE_CELL_ROWS = 16
_LARGE_CELL_INCHES = 0.6
_SMALL_CELL_INCHES = 0.3
_DOTS_PER_INCH = 150
_MARKERS = "osD^vPX"


def similarity_heatmap(
    sentences: Sequence[str],
    matrix: np.ndarray,
    *,
    path: str | os.PathLike[str] | None = None,
    label: str = "similarity",
) -> Figure:
    """Draws similarities of sentences as a heat map.

    The figure has no window. A notebook shows it if it is the last value of a cell.

    Args:
        sentences: `n` texts, the labels of rows and columns; long texts are shortened.
        matrix: `[n, n]` similarities, one row per sentence.
        path: File for the picture; its suffix gives the format (.png, .svg, .pdf).
        label: The label of the colour bar.
    """
    values = np.asarray(matrix, dtype=np.float64)
    count = len(sentences)
    if not count or values.shape != (count, count):
        raise ValueError(f"expected a matrix {(count, count)}, received {values.shape}")
    require("matplotlib", "plots")
    cell = _LARGE_CELL_INCHES if count <= _LARGE_CELL_ROWS else _SMALL_CELL_INCHES
    side = cell * max(count, 4)
    # The margins contain two inches of labels, and the colour bar.
    figure, axes = _figure(side + 3.5, side + 2.0, layout="compressed")
    # The scale is 0 to 1, so that plots are comparable; other values (dot products) extend it.
    image = axes.imshow(
        values, cmap="YlGnBu", vmin=min(0.0, values.min()), vmax=max(1.0, values.max())
    )
    size = 9 if count <= _LARGE_CELL_ROWS else 7
    columns = [_shorten(sentence, _COLUMN_CHARACTERS) for sentence in sentences]
    rows = [_row_label(sentence) for sentence in sentences]
    turned = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    axes.set_xticks(range(count), columns, fontsize=size, **turned)
    axes.set_yticks(range(count), rows, fontsize=size)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.spines[:].set_visible(False)
    for (row, column), value in np.ndenumerate(values if count <= _LARGE_CELL_ROWS else []):
        # The colour map is dark at its upper end.
        colour = "white" if image.norm(value) > 0.5 else "black"
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=9)
    figure.colorbar(image, ax=axes, label=label, fraction=0.04, pad=0.02)
    if path is not None:
        save(figure, path)
    return figure


def interval_plot(labels: Sequence[str], series: Mapping[str, ArrayLike], *, axis: str) -> Figure:
    """Draws values with their intervals, a row for each label.

    Args:
        labels: The names of the rows.
        series: Name → `[rows, 3]`: value, lower and upper end of the interval. What is not finite
            is not drawn.
        axis: The name of the horizontal axis.
    """
    rows = np.arange(len(labels), dtype=np.float64)
    figure, axes = _figure(9, 1.2 + len(labels) * max(0.35, 0.15 * len(series)))
    for place, (name, values) in enumerate(series.items()):
        value, low, high = np.asarray(values, np.float64).T
        height = rows + 0.7 * ((place + 0.5) / len(series) - 0.5)
        drawn, bounded = np.isfinite(value), np.isfinite(value + low + high)
        colour = f"C{place % 10}"
        axes.hlines(height[bounded], low[bounded], high[bounded], color=colour)
        marker = _MARKERS[place % len(_MARKERS)]
        axes.plot(value[drawn], height[drawn], marker, color=colour, label=_series_label(name))
    left, right = axes.get_xlim()
    if left < 0 < right:
        axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(rows, [_row_label(label, 96) for label in labels], fontsize=8)
    axes.set(xlabel=axis, ylim=(len(labels) - 0.5, -0.5))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def training_curves(
    losses: Mapping[str, Mapping[int, float]],
    scores: Mapping[int, float],
    *,
    score: str,
    unit: str,
    best: int,
) -> Figure:
    """Draws the losses of a training (name of a task → step → loss), and its validation scores.

    `scores` counts in `unit`, such as "step"; `best` is the one that is exported.
    """
    figure, axes = _figure(10, 4, 2)
    for task, values in losses.items():
        steps = sorted(values)
        axes[0].plot(steps, [values[each] for each in steps], label=_series_label(task))
    axes[0].set(xlabel="step", ylabel="loss", title="Loss of each task, in training")
    if losses:
        axes[0].legend()
    axes[1].plot([*scores], [*scores.values()], marker="o")
    axes[1].axvline(best, color="black", linestyle="--", label="exported")
    axes[1].set(xlabel=unit, ylabel=_shorten(score, 40), title="Validation rows")
    axes[1].legend()
    return figure


def sweep_scores(trials: Sequence[tuple[Mapping[str, Any], float]], *, score: str) -> Figure:
    """Draws the scores of trainings (`use_st5.training.sweep`) over each of their arguments.

    Args:
        trials: The arguments of each training by name, all with the same names, and its score.
        score: The name of the score.
    """
    names = [*trials[0][0]]
    figure, axes = _figure(1 + 4 * len(names), 4, len(names))
    for name, panel in zip(names, np.atleast_1d(axes), strict=True):
        values = [arguments[name] for arguments, _ in trials]
        is_number = all(isinstance(value, int | float) for value in values)
        if is_number and min(values) > 0 and max(values) >= 10 * min(values):
            panel.set_xscale("log")
        panel.plot(values if is_number else [*map(str, values)], [s for _, s in trials], "o")
        panel.set(xlabel=name, ylabel=_shorten(score, 40))
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure to a file that appears when it is complete; its suffix gives the format."""
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=_DOTS_PER_INCH)


def _figure(
    width: float, height: float, columns: int = 1, layout: Any = "constrained"
) -> tuple[Figure, Any]:
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    return figure, figure.subplots(1, columns)


def _row_label(text: str, characters: int = _ROW_CHARACTERS) -> str:
    return textwrap.fill(_shorten(text, characters), characters // 2 + 4)


def _series_label(name: str) -> str:
    # matplotlib leaves out of a legend what begins with an underscore.
    return re.sub("^_", " _", _shorten(name, _ROW_CHARACTERS))


def _shorten(sentence: str, characters: int) -> str:
    text = " ".join(without_controls(sentence).split()) or "(empty)"
    if len(text) > characters:
        text = text[: characters - 1].rstrip() + "…"
    # A dollar sign would start a formula.
    return text.replace("$", r"\$")
