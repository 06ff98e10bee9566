"""The plots of a report: what each shows, and how it is drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from use_st5.evaluation.report import charts
from use_st5.evaluation.report.charts import Axis, Series, Theme
from use_st5.evaluation.report.tables import Evaluated, Task, hundredfold

_CORRELATION = "Spearman correlation × 100"
# Beyond this a plot is taller than anybody reads.
_MOST_ROWS = 60
# The positives of the Sentence-T5 paper's figure.
_SHOWN_ALIGNMENT = "alignment_above_4"
_BIAS = {"weat": "Words (WEAT)", "seat": "Words in sentences (SEAT)"}
_DIRECTIONS = ("to_english", "from_english")
_JOINED = re.compile("(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Plot:
    """A plot of a report.

    Attributes:
        name: The name of its file, without ".png".
        caption: What it shows and how to read it.
        alt: The same for people who cannot see it.
        draw: Draws it in the colours of a theme.
        protocol: How its numbers were computed, where no table beside it says so.
    """

    name: str
    caption: str
    alt: str
    draw: Callable[[Theme], charts.Figure]
    protocol: str = ""


def dice_plot(models: Sequence[Evaluated]) -> Plot | None:
    """Lines of correlation over fifths of STS-B by shared words; None where no model has them."""
    found = [(model, task) for model in models if (task := model.task("sts_dice"))]
    if not found:
        return None
    quintiles = {model.position: task["details"]["quintiles"] for model, task in found}
    series = [
        Series(
            model.name,
            tuple(range(1, len(quintiles[model.position]) + 1)),
            tuple(hundredfold(each["spearman"]) for each in quintiles[model.position]),
            model=model.position,
        )
        for model, _ in found
    ]
    ticks: dict[float, str] = {
        place: f"{each['dice_from']:.2f} to\n{each['dice_to']:.2f}"
        for place, each in enumerate(quintiles[found[0][0].position], start=1)
    }

    def draw(theme: Theme) -> charts.Figure:
        axis = Axis("Dice coefficient of the two sentences’ words", _CORRELATION)
        return charts.lines(theme, series, axis, ticks)

    return Plot(
        "sts_dice",
        f"{found[0][1]['title']}: from the fifth of the pairs that shares fewest words to the one "
        "that shares most.",
        f"Lines of the {_CORRELATION} over fifths of the pairs by Dice coefficient, for "
        f"{', '.join(one.label for one in series)}.",
        draw,
        found[0][1]["protocol"],
    )


def source_plot(models: Sequence[Evaluated]) -> Plot | None:
    """A row of dots per source of STS12 to STS16; None where no model has them."""
    found = [(model, task) for model in models if (task := model.task("sts_sources"))]
    if not found:
        return None
    labels = [*dict.fromkeys(name for _, task in found for name in task["details"]["sources"])]
    series = [
        Series(
            model.name,
            tuple(
                hundredfold(task["details"]["sources"].get(name, {}).get("spearman"))
                for name in labels
            ),
            model=model.position,
        )
        for model, task in found
    ]

    def draw(theme: Theme) -> charts.Figure:
        return charts.dots(theme, labels, series, Axis(_CORRELATION))

    return Plot(
        "sts_sources",
        f"{found[0][1]['title']} of the sentences.",
        f"Dots of the {_CORRELATION} for {len(labels)} sources of sentences, for "
        f"{', '.join(one.label for one in series)}.",
        draw,
        found[0][1]["protocol"],
    )


def _ticks(sizes: list[float]) -> dict[float, str]:
    """Names for the sizes, without those too near to the one before to be read."""
    ticks: dict[float, str] = {}
    for size in sizes:
        if not ticks or size / [*ticks][-1] > 1.5:
            ticks[size] = f"{size / 1000:.3g}k" if size >= 1000 else f"{size:g}"
    return ticks


def tatoeba_plots(models: Sequence[Evaluated]) -> list[Plot]:
    """A row of dots per language; of many languages several plots, to stand side by side."""
    if not any(model.task("tatoeba") for model in models):
        return []
    codes = sorted_codes(models)
    parts = math.ceil(len(codes) / _MOST_ROWS)
    size = math.ceil(len(codes) / parts)
    return [
        _tatoeba_plot(models, codes[part * size : (part + 1) * size], part, parts)
        for part in range(parts)
    ]


def _tatoeba_plot(models: Sequence[Evaluated], codes: Sequence[str], part: int, parts: int) -> Plot:
    series = [
        Series(
            model.name,
            tuple(hundredfold(_both(languages(model).get(code))) for code in codes),
            model=model.position,
        )
        for model in models
        if model.task("tatoeba")
    ]
    names = language_names(models)

    def draw(theme: Theme) -> charts.Figure:
        labels = [names[code] for code in codes]
        axis = Axis("accuracy × 100, mean of both directions", ends=(-3, 103))
        return charts.dots(theme, labels, series, axis)

    place = f", part {part + 1} of {parts}" if parts > 1 else ""
    return Plot(
        f"tatoeba_{part + 1}" if parts > 1 else "tatoeba",
        f"Accuracy by language, the mean of both directions{place}.",
        f"Dots of accuracy for {len(codes)} languages for "
        f"{', '.join(one.label for one in series)}; the table has the numbers.",
        draw,
    )


def languages(model: Evaluated) -> dict[str, dict]:
    """Code of a language → its accuracies by Tatoeba."""
    task = model.task("tatoeba")
    return task["details"]["languages"] if task else {}


def language_names(models: Sequence[Evaluated]) -> dict[str, str]:
    """Code of a language → its name, for all languages of all models."""
    return {
        code: language["name"] for model in models for code, language in languages(model).items()
    }


def sorted_codes(models: Sequence[Evaluated]) -> list[str]:
    """The languages by the mean of all models, downwards; those of one mean by their name."""
    names = language_names(models)

    def mean(code: str) -> float:
        values = [_both(languages(model).get(code)) for model in models]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else -math.inf

    return sorted(names, key=lambda code: (-mean(code), names[code], code))


def _both(language: dict | None) -> float | None:
    if language is None or None in (values := [language[key] for key in _DIRECTIONS]):
        return None
    return sum(values) / len(values)


def geometry_plots(models: Sequence[Evaluated]) -> list[Plot]:
    """A point per model; empty where no model has both measures."""
    points = [
        (m, m.score("geometry", "uniformity"), m.score("geometry", _SHOWN_ALIGNMENT))
        for m in models
    ]
    series = [
        Series(model.name, (x,), (y,), model=model.position)
        for model, x, y in points
        if x is not None and y is not None and math.isfinite(x + y)
    ]
    if not series:
        return []

    def draw(theme: Theme) -> charts.Figure:
        axis = Axis("uniformity (less: more even)", "alignment, positives > 4 (less: closer)")
        return charts.scatter(theme, series, axis)

    alt = "; ".join(f"{s.label}: uniformity {s.x[0]:.2f}, alignment {s.y[0]:.2f}" for s in series)
    return [Plot("geometry", "The lower left corner is best.", f"A point per model. {alt}.", draw)]


def bias_plot(models: Sequence[Evaluated], group: str, tests: dict[str, Task]) -> Plot:
    """Bars of effect sizes with their intervals, a row per test."""
    labels = ["\n".join([task["title"], *categories(task)]) for task in tests.values()]
    series = [_bias_series(model, tests) for model in models]

    def draw(theme: Theme) -> charts.Figure:
        return charts.bars(theme, labels, series, Axis("effect size d"))

    names = ", ".join(one.label for one in series)
    return Plot(
        group,
        f"{_BIAS[group]}: effect sizes with their 95 % intervals. To the right of 0, the first "
        "targets are nearer to the first attributes.",
        f"Bars of the effect sizes of {len(tests)} tests for {names}; the table has the numbers.",
        draw,
    )


def _bias_series(model: Evaluated, tests: dict[str, Task]) -> Series:
    values = [model.score(test, "effect_size") for test in tests]
    spread = [interval(model, test) or (math.nan, math.nan) for test in tests]
    return Series(
        model.name,
        tuple(math.nan if value is None else value for value in values),
        spread=tuple(spread),
        model=model.position,
    )


def interval(model: Evaluated, test: str) -> tuple[float, float] | None:
    """The ends of the interval; None where there is none."""
    low, high = (model.score(test, f"effect_size_{end}") for end in ("low", "high"))
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return None
    return low, high


def categories(task: Task) -> list[str]:
    """The targets and the attributes in words; empty where the test does not name them."""
    # The sent-bias files write them as one word each: EuropeanAmericanNames.
    names = [_JOINED.sub(" ", name) for name in task["details"].get("categories", ())]
    return [f"{names[0]} / {names[1]}", f"{names[2]} / {names[3]}"] if names else []
