"""Plots of similarities; needs matplotlib (extra `plots`)."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from use_st5._files import atomic_path
from use_st5._imports import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Row labels have two lines; the rotated column labels have one.
_ROW_CHARACTERS = 56
_COLUMN_CHARACTERS = 28
# Up to this number of rows, the cells are large and show their value.
_LARGE_CELL_ROWS = 16
_LARGE_CELL_INCHES = 0.6
_SMALL_CELL_INCHES = 0.3
_DOTS_PER_INCH = 150


def similarity_heatmap(
    sentences: Sequence[str],
    matrix: np.ndarray,
    *,
    path: str | os.PathLike[str] | None = None,
    label: str = "similarity",
) -> Figure:
    """Draws similarities of sentences as a heat map.

    The figure has no window and does not change the global state of matplotlib. A notebook shows it
    if it is the last value of a cell.

    Args:
        sentences: `n` texts, the labels of rows and columns; long texts are shortened.
        matrix: `[n, n]` similarities, one row per sentence.
        path: File for the picture; its suffix gives the format (.png, .svg, .pdf). The file is
            renamed to this name when it is complete.
        label: The label of the colour bar.

    Returns:
        The figure.

    Raises:
        ValueError: The matrix does not match the sentences, or matplotlib does not support the
            suffix.
        ImportError: matplotlib is missing.
    """
    values = np.asarray(matrix, dtype=np.float64)
    count = len(sentences)
    if not count or values.shape != (count, count):
        raise ValueError(
            f"expected a matrix of shape {(count, count)} for {count} sentences (at least one), "
            f"received {values.shape}"
        )
    require("matplotlib", "plots")
    if path is not None:
        check_picture(path)
    figure, axes = _figure(count)
    # The scale is 0 to 1, so that plots are comparable; other values (dot products) extend it.
    image = axes.imshow(
        values, cmap="YlGnBu", vmin=min(0.0, values.min()), vmax=max(1.0, values.max())
    )
    _label_axes(axes, sentences)
    if count <= _LARGE_CELL_ROWS:
        _write_values(axes, values, image.norm)
    figure.colorbar(image, ax=axes, label=label, fraction=0.04, pad=0.02)
    if path is not None:
        with atomic_path(path) as temporary:
            figure.savefig(temporary, dpi=_DOTS_PER_INCH)
    return figure


def check_picture(path: str | os.PathLike[str]) -> None:
    """Checks that matplotlib supports the suffix of `path`.

    Raises:
        ValueError: The suffix is not supported.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    suffix, kinds = Path(path).suffix, sorted(FigureCanvasBase.get_supported_filetypes())
    if suffix.removeprefix(".").lower() not in kinds:
        raise ValueError(
            f"expected a picture that ends in {', '.join(f'.{each}' for each in kinds)}, received "
            f"{os.fspath(path)}"
        )


def _figure(count: int) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    cell = _LARGE_CELL_INCHES if count <= _LARGE_CELL_ROWS else _SMALL_CELL_INCHES
    side = cell * max(count, 4)
    # The margins contain two inches of labels, and the colour bar.
    figure = Figure(figsize=(side + 3.5, side + 2.0), layout="compressed")
    return figure, figure.add_subplot()


def _label_axes(axes: Axes, sentences: Sequence[str]) -> None:
    ticks = range(len(sentences))
    size = 9 if len(sentences) <= _LARGE_CELL_ROWS else 7
    columns = [_shorten(sentence, _COLUMN_CHARACTERS) for sentence in sentences]
    rows = [
        textwrap.fill(_shorten(sentence, _ROW_CHARACTERS), _ROW_CHARACTERS // 2 + 4)
        for sentence in sentences
    ]
    axes.set_xticks(ticks, columns, rotation=45, ha="left", rotation_mode="anchor", fontsize=size)
    axes.set_yticks(ticks, rows, fontsize=size)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.spines[:].set_visible(False)


def _shorten(sentence: str, characters: int) -> str:
    text = " ".join(sentence.split()) or "(empty)"
    if len(text) > characters:
        text = text[: characters - 1].rstrip() + "…"
    # A dollar sign would start a formula.
    return text.replace("$", r"\$")


def _write_values(axes: Axes, values: np.ndarray, norm: Any) -> None:
    for (row, column), value in np.ndenumerate(values):
        # The colour map is dark at its upper end.
        colour = "white" if norm(value) > 0.5 else "black"
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=9)
