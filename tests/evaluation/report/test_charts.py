from __future__ import annotations

import io
import math

import numpy as np
from matplotlib import pyplot
from PIL import Image

from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import COLOURS, INK, PAGE, Axis, Series, colour, marker, plain

OURS = Series("ours", (0.5, math.nan), spread=((0.2, 0.7), (math.nan, math.nan)), model=0)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=int)


def share(image: np.ndarray, colour: str) -> float:
    """The share of the pixels that are near to a colour."""
    wanted = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    return float((abs(image - wanted).max(axis=-1) < 12).mean())


def test_bars_show_the_value_and_the_interval() -> None:
    figure = charts.bars(["WEAT1\nflowers", "WEAT2"], [OURS], Axis("d"))
    (axes,) = figure.axes
    assert axes.patches[0].get_width() == 0.5
    assert math.isnan(axes.patches[1].get_width())
    lines = [tuple(line.get_xdata()) for line in axes.lines]
    assert (0.2, 0.7) in lines
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ours"]
    image = pixels(charts.png(figure))
    assert share(image, COLOURS[0]) > 0.01
    assert image.std() > 10


def test_the_page_is_white_and_lines_have_their_colour() -> None:
    series = [Series("a", (1, 10, 100), (50.0, math.nan, 70.0), model=1)]
    figure = charts.lines(series, Axis("n", "accuracy", log=True), {1: "1", 100: "100"})
    image = pixels(charts.png(figure))
    assert share(image, PAGE) > 0.7
    assert share(image, COLOURS[1]) > 0.001


def test_names_are_no_formulas_and_not_endless() -> None:
    assert plain("a$b$", 10) == r"a\$b\$"
    assert plain("x" * 50, 10) == "x" * 9 + "…"
    assert plain("_hidden", 10) == " _hidden"
    figure = charts.scatter([Series(r"$\frac{a}$", (1.0,), (2.0,), model=0)], Axis("x"))
    charts.png(figure)  # a formula would not parse
    assert not pyplot.get_fignums()


def test_dots_have_a_row_per_label_the_first_on_top() -> None:
    figure = charts.dots(["first", "second"], [OURS], Axis("x", ends=(0, 1)))
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["first", "second"]
    bottom, top = axes.get_ylim()
    assert top < 0 < 1 < bottom
    assert axes.get_xlim() == (0, 1)


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.1."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_and_marks_stand_out_as_wcag_asks() -> None:
    assert contrast(INK, PAGE) >= 7
    # Graphical objects: 3 to 1; sky blue and orange are a little below it on white.
    assert all(contrast(each, PAGE) >= 2.9 for each in COLOURS)


def test_many_models_look_different_from_each_other() -> None:
    assert len({(colour(place), marker(place)) for place in range(28)}) == 28
