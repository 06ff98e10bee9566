"""Plots: where marks stand, in which colours, and that names are text."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest

from use_st5 import _svg
from use_st5._svg import DARK, LIGHT, Axis, Series, Theme, ticks_between

OURS = Series("ours", (0.5, math.nan, -0.5), spread=((0.2, 0.7), *[(math.nan, math.nan)] * 2))


def parsed(plot: str) -> ElementTree.Element:
    return ElementTree.fromstring(plot)


def marks(plot: str, kind: str = "path") -> list[ElementTree.Element]:
    """The marks of the data, which have titles; the marks of the legend have none."""
    return [each for each in parsed(plot).iter(kind) if each.find("title") is not None]


def places(plot: str) -> list[tuple[float, float]]:
    found = (each.attrib["transform"] for each in marks(plot))
    return [tuple(map(float, each[len("translate(") : -1].split())) for each in found]


def texts(plot: str) -> list[str]:
    return [each.text or "" for each in parsed(plot).iter("text")]


def test_bars_start_at_zero_and_have_their_intervals() -> None:
    plot = _svg.bars(["a", "b", "c"], [OURS], Axis("d"), alt="bars")
    (zero,) = (e for e in parsed(plot).iter("line") if e.attrib["class"] == "zero")
    first, last = marks(plot, "rect")
    assert float(first.attrib["x"]) == float(zero.attrib["x1"])
    right = float(last.attrib["x"]) + float(last.attrib["width"])
    assert right == pytest.approx(float(zero.attrib["x1"]), abs=0.11)
    assert float(first.attrib["width"]) == pytest.approx(float(last.attrib["width"]), abs=0.11)
    (end,) = (e for e in parsed(plot).iter("line") if e.attrib["class"] == "end")
    width = float(first.attrib["width"])
    assert float(end.attrib["x2"]) - float(end.attrib["x1"]) == pytest.approx(width, abs=0.3)
    assert first.findtext("title") == "ours, a: 0.5 (0.2 to 0.7)"


def test_dots_stand_in_their_rows_the_first_on_top() -> None:
    other = Series("theirs", (0.0, 1.0), place=1)
    plot = _svg.dots(["first", "second"], [other], Axis("x", ends=(0, 1)), alt="dots")
    (left, top), (right, below) = places(plot)
    assert left < right
    assert top < below
    assert [text for text in texts(plot) if text in ("first", "second")] == ["first", "second"]


def test_curves_break_where_there_is_no_value() -> None:
    one = Series("loss", (0, 1, 2, 3), (1.0, math.nan, 3.0, 2.0))
    plot = _svg.lines([one], Axis("step", "loss"), alt="lines", rule=(2, "exported"))
    (curve,) = (e for e in parsed(plot).iter("path") if e.attrib["class"].startswith("curve"))
    assert curve.attrib["d"].count("M") == 2
    assert curve.attrib["d"].count("L") == 1
    assert len(marks(plot)) == 3
    heights = [y for _, y in places(plot)]
    assert heights[1] < heights[2] < heights[0], "a larger value stands higher"
    assert "exported" in texts(plot)
    long = Series("loss", tuple(range(100)), tuple(map(float, range(100))))
    assert not marks(_svg.lines([long], Axis("step"), alt="lines"))


def test_a_scatter_has_a_mark_a_point_and_ticks_may_have_names() -> None:
    assert len(marks(_svg.scatter([Series("a", (1.0,), (2.0,))], Axis("x", "y"), alt="s"))) == 1
    named = {1.0: "0.0 to\n0.5", 2.0: "0.5 to\n1.0"}
    plot = _svg.lines([Series("a", (1, 2), (3.0, 4.0))], Axis("x"), alt="l", ticks=named)
    assert {"0.0 to", "0.5", "0.5 to", "1.0"} <= {*texts(plot)}


def test_nothing_is_drawn_outside_the_picture() -> None:
    labels = ["a long label of many words that has to be folded twice " * 2, "b", "c"]
    many = [Series(f"model number {n}", (n, -n, 10.0**n), place=n) for n in range(9)]
    plot = _svg.dots(labels, many, Axis("a long name of the axis"), alt="x")
    _, _, width, height = map(float, parsed(plot).attrib["viewBox"].split())
    for x, y in places(plot):
        assert 0 < x < width
        assert 0 < y < height
    for each in parsed(plot).iter("text"):
        assert 0 <= float(each.attrib["y"]) <= height
    assert all(math.isfinite(value) for place in places(plot) for value in place)


def test_names_are_text() -> None:
    evil = "<script>alert('x')</script> & \"b\""
    plot = _svg.dots([evil], [Series(evil, (1.0,))], Axis(evil), alt=evil)
    assert "<script" not in plot
    assert parsed(plot).attrib["aria-label"] == evil
    assert evil in " ".join(texts(plot))


def test_a_file_has_its_own_colours() -> None:
    file = _svg.standalone(_svg.scatter([Series("a", (1.0,), (2.0,))], Axis("x"), alt="s"))
    root = ElementTree.fromstring(file.decode())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert b"prefers-color-scheme:dark" in file


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (-3, 7, [-2, 0, 2, 4, 6]), (0, 1e6, None)],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float] | None) -> None:
    found = ticks_between(low, high)
    assert 4 <= len(found) <= 8
    assert low <= min(found) <= max(found) <= high * (1 + 1e-9)
    if ticks is not None:
        assert found == pytest.approx(ticks)


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.1."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_and_marks_stand_out_as_wcag_asks(theme: Theme) -> None:
    assert contrast(theme.ink, theme.page) >= 7
    assert contrast(theme.muted, theme.page) >= 4.5
    # Graphical objects: 3 to 1; sky blue and orange are a little below it on white.
    assert all(contrast(colour, theme.page) >= 2.9 for colour in theme.series)
    assert len({*theme.series}) == _svg.COLOURS


def test_many_series_look_different_from_each_other() -> None:
    plots = (_svg.scatter([Series("a", (1,), (1,), place=n)], Axis("x"), alt="") for n in range(28))
    looks = [(m.attrib["class"], m.attrib["d"]) for plot in plots for m in marks(plot)]
    assert len(looks) == len({*looks}) == 28
