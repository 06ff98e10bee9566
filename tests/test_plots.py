"""The plots: their parts, their files, their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.plots import interval_plot, save, similarity_heatmap

SENTENCES = ["How old are you?", "What is your age?", "The train costs $5 or $6."]
MATRIX = np.array([[1.0, 0.8, -0.1], [0.8, 1.0, 0.2], [-0.1, 0.2, 1.0]], np.float32)


def test_labels_numbers_and_colour_bar() -> None:
    figure = similarity_heatmap(SENTENCES, MATRIX, label="cosine")
    axes, bar = figure.axes
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        shown = [" ".join(label.get_text().replace(r"\$", "$").split()) for label in labels]
        assert shown == SENTENCES
    cells = {tuple(text.get_position()): text.get_text() for text in axes.texts}
    assert cells[(2, 0)] == "-0.10"
    assert cells[(1, 1)] == "1.00"
    assert len(cells) == 9
    assert bar.get_ylabel() == "cosine"
    assert axes.images[0].get_clim() == (pytest.approx(-0.1), 1.0)


def test_picture_holds_every_label() -> None:
    """Nothing drawn is cut off at the picture's edge."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    sentences = [*SENTENCES, "A very long sentence that goes on and on, without end, " * 3, ""]
    matrix = np.eye(5)
    figure = similarity_heatmap(sentences, matrix)
    FigureCanvasAgg(figure).draw()
    width, height = figure.canvas.get_width_height()
    for axes in figure.axes:
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels(), axes.yaxis.label):
            if not label.get_text():
                continue
            box = label.get_window_extent()
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= width + 1
            assert box.y1 <= height + 1
    assert figure.axes[0].get_xticklabels()[4].get_text() == "(empty)"


@pytest.mark.parametrize(("name", "start"), [("map.png", b"\x89PNG"), ("map.svg", b"<?xml")])
def test_file_is_of_the_kind_its_name_says(tmp_path: Path, name: str, start: bytes) -> None:
    similarity_heatmap(SENTENCES, MATRIX, path=tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_intervals_stand_in_the_rows_of_their_labels(tmp_path: Path) -> None:
    series = {"a": [[1, 0, 2], [3, np.nan, np.nan]], "b": [[np.nan] * 3, [-5, -6, -4]]}
    figure = interval_plot(["$first", "second"], series, axis="points")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [r"\$first", "second"]
    marks = {line.get_label(): line.get_xydata() for line in axes.lines[:2]}
    assert np.round(marks["a"]).tolist() == [[1, 0], [3, 1]]
    assert np.round(marks["b"]).tolist() == [[-5, 1]]
    bars = [each.get_segments() for each in axes.collections]
    assert [[segment[:, 0].tolist() for segment in each] for each in bars] == [[[0, 2]], [[-6, -4]]]
    for n in (1, 2):
        save(figure, tmp_path / f"{n}.png")
    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "2.png").read_bytes()
