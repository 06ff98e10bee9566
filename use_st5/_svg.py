"""Plots as SVG texts: no package draws them, and they follow the reader's light or dark setting."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

# A plot is as wide as half a page on a desktop; it shrinks to a phone's width, still readable.
_WIDTH = 480
_LINE = 15
_CHARACTER = 6.6
_LABEL_CHARACTERS = 27
_LEGEND_CHARACTERS = 52
# A curve with more points than this has no markers.
_MARKED = 40
# Paths around (0, 0): disc, square, triangle, diamond, triangle downwards, plus, cross.
_MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-4.8L4.5 3.6h-9z",
    "M0-5L5 0L0 5L-5 0z",
    "M0 4.8L4.5-3.6h-9z",
    "M-1.4-4.5h2.8v3.1h3.1v2.8h-3.1v3.1h-2.8v-3.1h-3.1v-2.8h3.1z",
    "M-4.6-2.6L-2.6-4.6L0-2L2.6-4.6L4.6-2.6L2 0L4.6 2.6L2.6 4.6L0 2L-2.6 4.6L-4.6 2.6L-2 0z",
)
# After this number of series, the colours repeat.
COLOURS = 7


@dataclass(frozen=True)
class Theme:
    """Colours of a page and its plots.

    Attributes:
        ink: Text.
        muted: Less important text.
        line: Rules, grids and frames.
        page: The background.
        series: The colours of series, after Okabe and Ito's palette ("Color Universal Design",
            2008), which people with every common kind of colour vision can tell apart.
    """

    ink: str
    muted: str
    line: str
    page: str
    series: tuple[str, ...]

    def variables(self) -> str:
        """As CSS variables: `--ink`, `--muted`, `--line`, `--page`, `--c0` to `--c6`."""
        colours = {name: getattr(self, name) for name in ("ink", "muted", "line", "page")}
        colours |= {f"c{place}": colour for place, colour in enumerate(self.series)}
        return "".join(f"--{name}:{colour};" for name, colour in colours.items())


LIGHT = Theme(
    ink="#1f2328",
    muted="#59636e",
    line="#d8dee4",
    page="#ffffff",
    series=("#0072b2", "#d55e00", "#009e73", "#b8579a", "#c98500", "#3a9fdc", "#444b54"),
)
DARK = Theme(
    ink="#e6edf3",
    muted="#9aa4af",
    line="#3a424b",
    page="#0d1117",
    series=("#4aa8e0", "#ff8f3f", "#2fc79a", "#e08cc5", "#e0a92e", "#8ccbf2", "#b5bdc6"),
)
_MARKS = "".join(f".c{place}{{color:var(--c{place})}}" for place in range(COLOURS))
STYLE = (
    f":root{{color-scheme:light dark;{LIGHT.variables()}}}\n"
    f"@media (prefers-color-scheme:dark){{:root{{{DARK.variables()}}}}}\n"
    ".plot{display:block;width:100%;height:auto}"
    ".plot text{font:12px system-ui,sans-serif;fill:var(--ink)}"
    ".plot .grid{stroke:var(--line)}.plot .zero,.plot .end{stroke:var(--ink);stroke-width:1.2}"
    ".plot .mark{fill:currentColor}.plot .curve{fill:none;stroke:currentColor;stroke-width:1.8}"
    f"{_MARKS}"
)


@dataclass(frozen=True)
class Series:
    """The points of a series, such as a model.

    Attributes:
        label: Its name in the legend.
        x: Values along the horizontal axis; NaN draws nothing.
        y: Values along the vertical axis; empty if the plot has a row per label instead.
        spread: (lower, upper) ends of each point's interval; empty without intervals.
        place: A number that chooses the colour and the marker.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...] = ()
    spread: tuple[tuple[float, float], ...] = ()
    place: int = 0


@dataclass(frozen=True)
class Axis:
    """The names of a plot's axes.

    Attributes:
        x: The name of the horizontal axis.
        y: The name of the vertical axis; it stands above the plot.
        ends: The two ends of the horizontal axis; None: as the points need.
    """

    x: str
    y: str = ""
    ends: tuple[float, float] | None = None


def bars(labels: Sequence[str], series: Sequence[Series], axis: Axis, *, alt: str) -> str:
    """Horizontal bars from zero with intervals, a row per label."""
    return _rows(labels, series, axis, alt, bar=True)


def dots(labels: Sequence[str], series: Sequence[Series], axis: Axis, *, alt: str) -> str:
    """Markers with intervals, a row per label."""
    return _rows(labels, series, axis, alt, bar=False)


def lines(
    series: Sequence[Series],
    axis: Axis,
    *,
    alt: str,
    ticks: dict[float, str] | None = None,
    rule: tuple[float, str] | None = None,
) -> str:
    """Draws curves, with markers if there are few points.

    Args:
        series: The curves.
        axis: The names of the axes.
        alt: The plot in words, for screen readers.
        ticks: Names of places on the horizontal axis; None: numbers.
        rule: A vertical line at a place, and its name.
    """
    return _plane(series, axis, alt, joined=True, ticks=ticks, rule=rule)


def scatter(series: Sequence[Series], axis: Axis, *, alt: str) -> str:
    """A marker per point."""
    return _plane(series, axis, alt, joined=False)


def standalone(plot: str) -> bytes:
    """Returns the plot as an SVG file with its own colours and background."""
    start, end = plot.split(">", 1)
    ground = '<rect width="100%" height="100%" fill="var(--page)"/>'
    return (
        f'{start} xmlns="http://www.w3.org/2000/svg">\n<style>{STYLE}</style>{ground}{end}\n'
    ).encode()


def ticks_between(low: float, high: float) -> list[float]:
    """About five round numbers from `low` to `high`: steps of 1, 2 or 5."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.99)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def _rows(
    labels: Sequence[str], series: Sequence[Series], axis: Axis, alt: str, *, bar: bool
) -> str:
    texts = [_folded(label) for label in labels]
    spread = bar or any(one.spread for one in series)
    heights = [
        max((11 if spread else 0) * len(series) + 8, _LINE * len(text) + 6, 22) for text in texts
    ]
    legend, top = _legend(series)
    if long := sum(heights) > 350:  # A long plot is read from its top: the scale stands there too.
        top += _LINE
    left = 18 + _CHARACTER * max((len(line) for text in texts for line in text), default=0)
    bottom = top + sum(heights)
    low, high = axis.ends or _range(series, lambda one: one.x, zero=bar)
    across = _scale(low, high, left, _WIDTH - 14)
    parts = [*legend, *_x_axis(across, (low, high), (top, bottom), axis.x, above=long)]
    if low < 0 < high:
        parts.append(_line(across(0), top, across(0), bottom, "zero"))
    y = float(top)
    for row, (text, height) in enumerate(zip(texts, heights, strict=True)):
        start = y + height / 2 - _LINE * (len(text) - 1) / 2 + 4
        parts += [_text(left - 8, start + _LINE * n, line, "end") for n, line in enumerate(text)]
        for n, one in enumerate(series):
            offset = (n - (len(series) - 1) / 2) * 11 if spread else 0
            parts += _in_row(one, row, across, y + height / 2 + offset, labels[row], bar=bar)
        y += height
    return _svg(parts, bottom + 38, alt)


def _in_row(
    one: Series, row: int, across: Callable[[float], float], y: float, label: str, *, bar: bool
) -> Iterable[str]:
    """The mark of a series in a row, and its interval."""
    if not math.isfinite(value := one.x[row]):
        return
    colour = f"c{one.place % COLOURS}"
    ends = one.spread[row] if one.spread else (math.nan, math.nan)
    title = _said(f"{one.label}, {' '.join(label.split())}", value, ends)
    has_interval = all(map(math.isfinite, ends))
    if has_interval and not bar:
        yield f'<g class="{colour}">{_line(across(ends[0]), y, across(ends[1]), y, "curve")}</g>'
    if bar:
        start, end = sorted((across(0), across(value)))
        yield (
            f'<rect class="mark {colour}" x="{start:.1f}" y="{y - 4.5:.1f}" '
            f'width="{end - start:.1f}" height="9">{title}</rect>'
        )
        if has_interval:
            yield _line(across(ends[0]), y, across(ends[1]), y, "end")
    else:
        yield _marker(one, across(value), y, title)


def _plane(
    series: Sequence[Series],
    axis: Axis,
    alt: str,
    *,
    joined: bool,
    ticks: dict[float, str] | None = None,
    rule: tuple[float, str] | None = None,
) -> str:
    legend, top = _legend(series)
    parts = [*legend, _text(0, top + 10, axis.y)]
    top += 20
    bottom, right = top + 210, _WIDTH - (40 if ticks else 14)
    low, high = _range(series, lambda one: one.y)
    up = _scale(low, high, bottom, top)
    labels = _numbers(ticks_between(low, high))
    left = 12 + _CHARACTER * max(len(text) for text in labels.values())
    for value, text in labels.items():
        parts.append(_line(left, up(value), right, up(value), "grid"))
        parts.append(_text(left - 6, up(value) + 4, text, "end"))
    ends = axis.ends or _range(series, lambda one: one.x, inside=not joined)
    across = _scale(*ends, left + 14 if joined else left, right)
    parts += _x_axis(across, ends, (top, bottom), axis.x, ticks=ticks)
    if rule is not None:
        rule_x = across(rule[0])
        parts.append(_line(rule_x, top, rule_x, bottom, "zero"))
        anchor = "end" if rule_x > _WIDTH / 2 else "start"
        parts.append(_text(rule_x + (-5 if anchor == "end" else 5), bottom - 6, rule[1], anchor))
    for one in series:
        parts += _curve(one, across, up, joined=joined)
    extra_lines = max((text.count("\n") for text in (ticks or {}).values()), default=0)
    return _svg(parts, bottom + 38 + _LINE * extra_lines, alt)


def _curve(
    one: Series, across: Callable[[float], float], up: Callable[[float], float], *, joined: bool
) -> Iterable[str]:
    """Draws a series: its line with a gap for each missing value, its intervals and its markers."""
    colour, new = f"c{one.place % COLOURS}", True
    runs: list[list[str]] = []
    marks: list[str] = []
    for index, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
        if not math.isfinite(x + y):
            new = True
            continue
        if new:
            runs.append([])
            new = False
        runs[-1].append(f"{across(x):.1f} {up(y):.1f}")
        ends = one.spread[index] if one.spread else (math.nan, math.nan)
        if all(map(math.isfinite, ends)):
            line = _line(across(x), up(ends[0]), across(x), up(ends[1]), "curve")
            marks.append(f'<g class="{colour}">{line}</g>')
        if len(one.x) <= _MARKED or not joined:
            marks.append(_marker(one, across(x), up(y), _said(one.label, y, ends)))
    if joined and runs:
        yield f'<path class="curve {colour}" d="{"".join("M" + "L".join(run) for run in runs)}"/>'
    yield from marks


def _x_axis(
    across: Callable[[float], float],
    ends: tuple[float, float],
    sides: tuple[float, float],
    name: str,
    *,
    ticks: dict[float, str] | None = None,
    above: bool = False,
) -> Iterable[str]:
    """The vertical grid, its numbers or names below it, and the axis's name."""
    top, bottom = sides
    labels = ticks or _numbers(ticks_between(*ends))
    extra_lines = max((text.count("\n") for text in labels.values()), default=0)
    for value, text in labels.items():
        yield _line(across(value), top, across(value), bottom, "grid")
        for n, line in enumerate(text.split("\n")):
            yield _text(across(value), bottom + _LINE * (1 + n), line, "middle")
        if above:
            yield _text(across(value), top - 4, text, "middle")
    middle = (across(ends[0]) + across(ends[1])) / 2
    half = _CHARACTER * len(name) / 2
    middle = min(max(middle, half), _WIDTH - half)
    yield _text(middle, bottom + 2 + _LINE * (2 + extra_lines), name, "middle")


def _legend(series: Sequence[Series]) -> tuple[list[str], int]:
    """Returns the names with their markers, and the height that they take."""
    parts, x, y = [], 0.0, 12
    for one in series:
        label = textwrap.shorten(one.label, 10**6) or " "
        if len(label) > _LEGEND_CHARACTERS:
            label = label[: _LEGEND_CHARACTERS - 1].rstrip() + "…"
        width = 34 + _CHARACTER * len(label)
        if x and x + width > _WIDTH:
            x, y = 0.0, y + _LINE + 3
        parts += [_marker(one, x + 6, y - 4, ""), _text(x + 16, y, label)]
        x += width
    return parts, y + 14


def _marker(one: Series, x: float, y: float, said: str) -> str:
    # Series that share a colour differ in their marker.
    shape = _MARKERS[(one.place + one.place // COLOURS) % len(_MARKERS)]
    return (
        f'<path class="mark c{one.place % COLOURS}" transform="translate({x:.1f} {y:.1f})" '
        f'd="{shape}">{said}</path>'
    )


def _said(label: str, value: float, ends: tuple[float, float]) -> str:
    """Returns the text that a browser shows next to the pointer."""
    has_interval = all(map(math.isfinite, ends))
    interval = f" ({ends[0]:.4g} to {ends[1]:.4g})" if has_interval else ""
    return f"<title>{escape(' '.join(label.split()))}: {value:.4g}{interval}</title>"


def _range(
    series: Sequence[Series],
    values: Callable[[Series], Sequence[float]],
    *,
    zero: bool = False,
    inside: bool = True,
) -> tuple[float, float]:
    """The ends of an axis: the values and intervals along it, with some space around them."""
    rows = [values(one) for one in series]
    points = [value for row in rows for value in row]
    # Intervals lie along the vertical axis if there is one.
    points += [
        end
        for one, row in zip(series, rows, strict=True)
        if row is one.y or not one.y
        for ends in one.spread
        for end in ends
    ]
    points = [value for value in points if math.isfinite(value)] or [0.0]
    low, high = min([*points, 0.0] if zero else points), max([*points, 0.0] if zero else points)
    if low == high:
        low, high = low - 0.5, high + 0.5
    space = 0.05 * (high - low) if inside else 0.0
    return low - space, high + space


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _numbers(values: Sequence[float]) -> dict[float, str]:
    """Returns each number as a text, with as many decimals as the step needs."""
    step = values[1] - values[0] if len(values) > 1 else 1.0
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return {value: f"{value:,.{digits}f}".replace("-", "−") for value in values}


def _folded(label: str) -> list[str]:
    """Returns the label's lines: long lines are wrapped, and at most six are kept."""
    lines = [
        part
        for line in label.split("\n")
        for part in textwrap.wrap(" ".join(line.split()), _LABEL_CHARACTERS) or [""]
    ]
    return lines if len(lines) <= 6 else [*lines[:5], lines[5] + " …"]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Iterable[str], height: float, alt: str) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(alt)}">{"".join(parts)}</svg>'
    )
