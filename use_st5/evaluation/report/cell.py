"""Numbers as a report shows them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

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
