"""Differences between two models' scores, with intervals if the records allow them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

_Z = 1.959964  # 95 % of a normal distribution lie within ± this
# The number of rows that a score is computed on is the first of these counts that the record has.
# Cross-validation scores each row of its training data, and has only the count "train".
_ROWS = ("test", "dev", "pairs", "items", "train")


class Difference(NamedTuple):
    """A difference of scores, and the ends of its 95 % interval, NaN if there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def interval(task: dict[str, Any]) -> tuple[float, float] | None:
    """The 95 % interval of a task's main score over samples of its sentences.

    Accuracies have Wilson's interval, correlations over all pairs that of Fisher's z (with Bonett
    and Wright's standard error for Spearman's), areas under the ROC curve Hanley and McNeil's.

    Args:
        task: The entry of a record.

    Returns:
        The ends; None for other scores, and if the record has no number of rows or one below 10.
    """
    value, counts = task["scores"][task["main"]], task["counts"]
    rows = next((counts[name] for name in _ROWS if counts.get(name)), 0)
    if value is None or rows < 10:
        return None
    if task["main"] == "accuracy" and 0 <= value <= 1:
        return _wilson(value, rows)
    if task["main"] in ("spearman", "spearman_all", "pearson", "pearson_all") and abs(value) < 1:
        factor = 1 + value * value / 2 if task["main"].startswith("spearman") else 1.0
        half = _Z * math.sqrt(factor / (rows - 3))
        return math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)
    if task["main"] == "auc" and 0 < (positive := counts.get("positive", 0)) < rows:
        return _hanley_mcneil(value, positive, rows - positive)
    return None


def _wilson(share: float, rows: int) -> tuple[float, float]:
    square = _Z * _Z / rows
    middle = (share + square / 2) / (1 + square)
    half = _Z * math.sqrt(share * (1 - share) / rows + square / (4 * rows)) / (1 + square)
    return middle - half, middle + half


def _hanley_mcneil(area: float, positive: int, negative: int) -> tuple[float, float]:
    square = area * area
    variance = area * (1 - area)
    variance += (positive - 1) * (area / (2 - area) - square)
    variance += (negative - 1) * (2 * square / (1 + area) - square)
    half = _Z * math.sqrt(variance / (positive * negative))
    return max(0.0, area - half), min(1.0, area + half)


def difference(task: dict[str, Any], base: dict[str, Any]) -> Difference | None:
    """The main score of a task minus the baseline's, in the score's own unit.

    The interval combines the intervals of the two scores (Newcombe, 1998, method 10; Zou, 2007), as
    if each model were measured on different sentences. In fact, models are measured on the same
    sentences and are right on much the same ones, so the interval is wider than necessary.

    Returns:
        The difference; None if a score is undefined.
    """
    value, base_value = task["scores"][task["main"]], base["scores"][base["main"]]
    if value is None or base_value is None:
        return None
    task_interval, base_interval = interval(task), interval(base)
    if task_interval is None or base_interval is None:
        return Difference(value - base_value)
    low = math.hypot(value - task_interval[0], base_interval[1] - base_value)
    high = math.hypot(task_interval[1] - value, base_value - base_interval[0])
    return Difference(value - base_value, value - base_value - low, value - base_value + high)


def mean_difference(differences: Sequence[Difference]) -> Difference:
    """The mean over tasks; half intervals add as squares, as if tasks shared no sentences."""
    count = len(differences)
    value = sum(each.value for each in differences) / count
    low = math.hypot(*(each.value - each.low for each in differences)) / count
    high = math.hypot(*(each.high - each.value for each in differences)) / count
    return Difference(value, value - low, value + high)
