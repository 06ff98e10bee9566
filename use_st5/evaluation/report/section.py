"""What a report is made of: cells with numbers, tables, plots, and sections of these."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from use_st5.evaluation.report.charts import Draw

# Never a 0, never an empty cell: a score that is not there and one that has no value differ.
MISSING = "–"
UNDEFINED = "undefined"

_STATISTICS = {
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "accuracy": "accuracy",
    "f1": "F1",
    "auc": "area under the ROC curve",
    "matthews": "Matthews correlation",
    "precision": "precision",
    "recall": "recall",
}
_AGGREGATIONS = {
    "all": "“all” (the pairs of all subsets together)",
    "mean": "“mean” (the mean over the subsets)",
    "wmean": "“wmean” (the mean over the subsets, weighted by their pairs)",
}


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: The number.
        value: What it shows, for comparing; None where there is nothing to compare.
        small: A second line, for example an interval.
        note: What hovering over it says.
        best: Whether it is the best of those it is compared with.
    """

    text: str
    value: float | None = None
    small: str = ""
    note: str = ""
    best: bool = False

    @property
    def state(self) -> str:
        """How it is to look: "missing", "undefined" or "value"."""
        return {MISSING: "missing", UNDEFINED: "undefined"}.get(self.text, "value")


def score_cell(value: float | None, statistic: str, *, small: str = "", note: str = "") -> Cell:
    """The cell of a score in its natural unit, by the name of the score."""
    if value is None:
        return Cell(MISSING, note=note or "not measured")
    if math.isnan(value):
        return Cell(UNDEFINED, note=note)
    shown = value * 100 if in_percent(statistic) else value
    return Cell(number(shown, _decimals(statistic)), shown, small=small, note=note)


def in_percent(statistic: str) -> bool:
    """Whether tables show this score times 100: correlations, accuracies and their like."""
    return statistic.split("_")[0] in _STATISTICS


def describe(statistic: str) -> str:
    """The name of a score in words: what is computed, in which unit, by which aggregation."""
    kind, _, rest = statistic.partition("_")
    if kind not in _STATISTICS:
        return statistic.replace("_", " ")
    words = f"{_STATISTICS[kind]} × 100"
    if rest.startswith("angular"):
        rest = rest.removeprefix("angular").removeprefix("_")
        words += " of the angular similarity"
    if rest == "dev":
        words += " on the development gold that chose its threshold"
    elif rest:
        words += f", aggregation {_AGGREGATIONS.get(rest, rest.replace('_', ' '))}"
    return words


def sentence(words: str) -> str:
    """The words as a sentence: a capital first, one full stop last."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def number(value: float, digits: int) -> str:
    """A number with a true minus sign, and no minus before a zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def hundredfold(value: float | None) -> float:
    """The value × 100; NaN, which draws nothing, where there is none."""
    return math.nan if value is None else value * 100


def probability(value: float | None) -> str:
    """A p-value that can be read: "p = 0.035", "p < 0.001"."""
    if value is None:
        return ""
    if math.isnan(value):
        return f"p {UNDEFINED}"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def mark_best(cells: Sequence[Cell], *, higher: bool = True) -> list[Cell]:
    """Marks the best of the cells, all of them where several show the same number.

    A single number is not the best of anything: at least two are needed.
    """
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return [*cells]
    best = max(values) if higher else min(values)
    # What looks the same in the table is marked the same.
    texts = {cell.text for cell in cells if cell.value == best}
    return [dataclasses.replace(cell, best=cell.text in texts) for cell in cells]


def _decimals(statistic: str) -> int:
    if statistic.startswith("p_value"):
        return 3
    return 3 if statistic.startswith(("alignment", "uniformity")) else 2


@dataclass(frozen=True)
class Column:
    """The head of a column.

    Attributes:
        title: What it holds.
        note: What hovering over it says.
        model: The position of the model whose column it is; None for another column.
    """

    title: str
    note: str = ""
    model: int | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        label: Its head.
        cells: One per column.
        detail: More about it, in smaller type.
        model: The position of the model whose row it is; None for another row.
        published: Whether its numbers come from a paper.
    """

    label: str
    cells: tuple[Cell, ...]
    detail: str = ""
    model: int | None = None
    published: bool = False


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        caption: What the numbers are, with their unit and aggregation.
        corner: What the heads of the rows are.
        columns: The heads.
        rows: What everybody should see.
        more: Rows for those who ask, published ones beyond the choice.
        notes: (what, text) pairs below the table: protocols, sources.
        cautions: Why numbers of one column cannot be compared; empty where they can.
        title: Where a section has several tables.
        long: Whether it is left out where a reader wants the main tables alone.
    """

    caption: str
    corner: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    more: tuple[Row, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    cautions: tuple[str, ...] = ()
    title: str = ""
    long: bool = False

    def __post_init__(self) -> None:
        for row in (*self.rows, *self.more):
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"{row.label}: expected {len(self.columns)} cells, received {len(row.cells)}."
                )


@dataclass(frozen=True)
class Plot:
    """A plot of a report.

    Attributes:
        name: The name of its file, without ".png".
        caption: What it shows and how to read it.
        alt: The same for who cannot see it.
        draw: Draws it in the colours of a theme.
        protocol: How its numbers were computed, where no table beside it says so.
    """

    name: str
    caption: str
    alt: str
    draw: Draw
    protocol: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        name: Its anchor.
        title: Its heading.
        lead: What a reader should know before its numbers.
        tables: Its tables.
        plots: Its plots.
    """

    name: str
    title: str
    lead: str
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
