"""The tables of a report: cells with numbers, and a row per model with a column per task."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from use_st5.evaluation.record import EvaluationRecord

Task = dict[str, Any]

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
class Evaluated:
    """One model of a report.

    Attributes:
        record: What was measured.
        position: Its place in the report, from 0; chooses its colour and its marker everywhere.
    """

    record: EvaluationRecord
    position: int

    @property
    def name(self) -> str:
        """The model's name on one line."""
        return one_line(self.record.model["name"])

    def task(self, name: str) -> Task | None:
        """What was found by a task; None where it was not run."""
        return self.record.tasks.get(name)

    def score(self, task: str, name: str | None = None) -> float | None:
        """One score in its natural unit.

        Args:
            task: Name of the task.
            name: Name of the score; by default the task's main one.

        Returns:
            NaN where it is undefined, None where it was not measured.
        """
        found = self.task(task)
        if found is None:
            return None
        key = name or found["main"]
        if key not in found["scores"]:
            return None
        value = found["scores"][key]
        return math.nan if value is None else float(value)

    def mean(self, tasks: Iterable[str]) -> float | None:
        """Mean of the main scores; None where one was not measured, NaN where one is undefined."""
        scores = [self.score(task) for task in tasks]
        measured = [score for score in scores if score is not None]
        if not scores or len(measured) < len(scores):
            return None
        return sum(measured) / len(measured)


def evaluated_models(records: Sequence[EvaluationRecord]) -> list[Evaluated]:
    """Gives each record its place.

    Raises:
        ValueError: There are no records, or two of one name.
    """
    models = [Evaluated(record, position) for position, record in enumerate(records)]
    if not models:
        raise ValueError("Expected the records of one model or more, received none.")
    names = [model.name for model in models]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Expected a different name for each model, received {', '.join(repeated)} more than "
            "once. `use-st5 report NAME=FILE` gives the model of a file another name."
        )
    return models


def tasks_of(models: Iterable[Evaluated], group: str) -> dict[str, Task]:
    """Name → what the first model that has it found, in the records' order, for one group."""
    found: dict[str, Task] = {}
    for model in models:
        for name, task in model.record.tasks.items():
            if task["group"] == group:
                found.setdefault(name, task)
    return found


def one_line(text: object) -> str:
    """The text with every run of white space as one space."""
    return " ".join(str(text).split())


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
    """

    label: str
    cells: tuple[Cell, ...]
    detail: str = ""
    model: int | None = None


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        caption: What the numbers are, with their unit and aggregation.
        corner: What the heads of the rows are.
        columns: The heads.
        rows: A cell per column each.
        notes: (what, text) pairs below the table: protocols, sources.
        cautions: Why numbers of one column cannot be compared; empty where they can.
        title: Where a section has several tables.
        long: Whether it is left out where a reader wants the main tables alone.
    """

    caption: str
    corner: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[tuple[str, str], ...] = ()
    cautions: tuple[str, ...] = ()
    title: str = ""
    long: bool = False


def score_table(
    models: Sequence[Evaluated],
    group: str,
    *,
    order: Sequence[str] = (),
    average: Sequence[str] = (),
    apart: Sequence[str] = (),
    only: bool = False,
    score: str | None = None,
    title: str = "",
) -> Table | None:
    """A row per model, a column per task, and the mean.

    Args:
        models: The rows.
        group: The tasks' group.
        order: The tasks of the papers' table, in its order; the group's others follow.
        average: The first of them, whose mean the papers give; it follows them where all of them
            were measured for some model.
        apart: Tasks of the group that are shown in another way.
        only: Whether the tasks of `order` are all that it shows.
        score: Which score it shows; None: each task's main one.
        title: Where a section has several tables.

    Returns:
        None where no model has a task of the group.
    """
    found = {
        name: task
        for name, task in tasks_of(models, group).items()
        if name not in apart and (score is None or score in task["scores"])
    }
    first = [name for name in order if name in found]
    rest = [] if only else [name for name in found if name not in order]
    tasks = {name: found[name] for name in (*first, *rest)}
    if not tasks:
        return None
    heads = [Column(task["title"], task["protocol"]) for task in tasks.values()]
    columns = [_column(models, name, score) for name in tasks]
    if average and set(average) <= tasks.keys():
        titles = ", ".join(tasks[name]["title"] for name in average)
        heads.insert(len(average), Column("Avg.", f"Mean of {titles}."))
        columns.insert(len(average), mean_column(models, average))
    return Table(
        caption=_caption(models, tasks, score),
        corner="Model",
        columns=tuple(heads),
        rows=tuple(model_rows(models, columns)),
        notes=tuple(protocol_notes(tasks)),
        cautions=cautions(models, tasks),
        title=title,
    )


def model_rows(models: Sequence[Evaluated], columns: Sequence[Sequence[Cell]]) -> list[Row]:
    """The rows of the models, from columns with a cell per model."""
    return [
        Row(model.name, tuple(column[model.position] for column in columns), model=model.position)
        for model in models
    ]


def mean_column(models: Sequence[Evaluated], names: Sequence[str]) -> list[Cell]:
    """The means of the main scores of tasks, one cell per model."""
    cells = []
    for model in models:
        absent = [name for name in names if model.task(name) is None]
        note = f"not measured: {', '.join(absent)}" if absent else f"of {len(names)} tasks"
        task = model.task(names[0])
        cells.append(score_cell(model.mean(names), task["main"] if task else "", note=note))
    return cells if cautions(models, names) else mark_best(cells)


def task_cell(model: Evaluated, name: str, score: str | None = None) -> Cell:
    """The cell of one score of a task, by default the main one; it tells its sizes on hovering."""
    task = model.task(name)
    if task is None:
        return score_cell(None, "", note=model.record.skipped.get(name, ""))
    score = score or task["main"]
    counts = ", ".join(f"{count:,} {what}" for what, count in task["counts"].items())
    note = f"{task['title']}: {describe(score)}" + (f"; {counts}" if counts else "")
    return score_cell(model.score(name, score), score, note=note.replace("_", " "))


def protocol_notes(tasks: dict[str, Task]) -> list[tuple[str, str]]:
    """(titles, protocol with its options) pairs, each protocol once."""
    titles: dict[str, list[str]] = {}
    for task in tasks.values():
        options = "; ".join(f"{name} = {value}" for name, value in task["options"].items())
        protocol = sentence(task["protocol"]) + (f" Options: {options}." if options else "")
        titles.setdefault(protocol, []).append(task["title"])
    return [(", ".join(names), protocol) for protocol, names in titles.items()]


def cautions(models: Sequence[Evaluated], names: Iterable[str]) -> tuple[str, ...]:
    """Why the models' scores of tasks cannot be compared; empty where they all can."""
    titles: dict[str, list[str]] = {}
    for name in names:
        tasks = [task for model in models if (task := model.task(name))]
        ways = {json.dumps([t["main"], t["protocol"], t["options"]], sort_keys=True) for t in tasks}
        data = {tuple(sorted(task["data"].values())) for task in tasks}
        for variants, what in ((ways, "by different protocols"), (data, "on different data files")):
            if len(variants) > 1:
                titles.setdefault(what, []).append(tasks[0]["title"])
    return tuple(
        f"{', '.join(names)}: the models were measured {what}." for what, names in titles.items()
    )


def _column(models: Sequence[Evaluated], name: str, score: str | None) -> Sequence[Cell]:
    cells = [task_cell(model, name, score) for model in models]
    return cells if cautions(models, [name]) else mark_best(cells)


def _caption(models: Sequence[Evaluated], tasks: dict[str, Task], score: str | None) -> str:
    """Which statistics the table shows, each with the tasks that have it where they differ."""
    titles: dict[str, list[str]] = {}
    for name, first in tasks.items():
        found = {score or task["main"] for model in models if (task := model.task(name))}
        for main in sorted(found):
            titles.setdefault(describe(main), []).append(first["title"])
    if len(titles) == 1:
        (only,) = titles
        return sentence(only)
    return " ".join(f"{', '.join(names)}: {words}." for words, names in titles.items())
