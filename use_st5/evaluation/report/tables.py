"""The sections of a report: tables of the scores of evaluated models, and plots."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from use_st5._page import Cell
from use_st5.evaluation.record import EvaluationRecord
from use_st5.evaluation.report.differences import Difference, difference, mean_difference
from use_st5.evaluation.report.plots import (
    Plot,
    bias_plot,
    categories,
    difference_plot,
    geometry_plot,
    name_of,
    score_of,
)

Records = Sequence[EvaluationRecord]
Tasks = dict[str, dict[str, Any]]

# A score that was not measured and a score without a value are shown differently.
MISSING, UNDEFINED = "–", "undefined"

# The tasks of the papers' tables in their order; the papers print the mean of them.
_STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
_TRANSFER = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
_PROBING = tuple(
    f"probing_{name}"
    for name in (
        *("length", "word_content", "depth", "top_constituents", "bigram_shift", "tense"),
        *("subject_number", "object_number", "odd_man_out", "coordination_inversion"),
    )
)
_BUCC = tuple(f"bucc_{language}-en" for language in ("de", "fr", "ru", "zh"))
_XSTS = ("xsts_ar-ar", "xsts_ar-en", "xsts_es-es", "xsts_es-en", "xsts_tr-en")


class _Group(NamedTuple):
    """A group of tasks: its title, what its scores say, and the tasks that the papers average."""

    title: str
    lead: str
    average: tuple[str, ...] = ()


_GROUPS = {
    "sts": _Group(
        "Semantic textual similarity",
        "How well the similarity of two embeddings follows the one that people see. Correlations "
        "of different aggregations cannot be compared; each table names its own.",
        _STS,
    ),
    "senteval": _Group(
        "Transfer (SentEval)",
        "How well a small classifier on the frozen embeddings does a task that the encoder was not "
        "trained for.",
        _TRANSFER,
    ),
    "senteval_sklearn": _Group(
        "Transfer (SentEval, scikit-learn)",
        "The same with scikit-learn's classifier.",
        tuple(f"{name}_sklearn" for name in _TRANSFER),
    ),
    "probing": _Group(
        "Probing (SentEval)", "Which properties of a sentence its embedding contains.", _PROBING
    ),
    "sentglue": _Group("SentGLUE", "GLUE's tasks with a classifier on the frozen embeddings."),
    "pairs": _Group(
        "Pair classification",
        "How well the similarity of two embeddings tells related pairs from others.",
    ),
    "minimal_pairs": _Group(
        "Minimal pairs",
        "How often a paraphrase in other words is nearer to a sentence than an altered sentence in "
        "almost the same words, by what was altered. Counting words scores 0.25, chance 50.",
    ),
    "tatoeba": _Group(
        "Finding translations (Tatoeba)",
        "How often the nearest sentence of the other language is the translation.",
    ),
    "bucc": _Group(
        "Mining translations (BUCC)",
        "How many of the translations in two texts are found, and how many of the found are "
        "translations.",
        _BUCC,
    ),
    "multilingual_sts": _Group(
        "Similarity in other languages",
        "Semantic textual similarity within and across languages.",
        _XSTS,
    ),
    "geometry": _Group(
        "Alignment and uniformity",
        "Alignment is the mean squared distance of pairs that mean the same; uniformity says how "
        "evenly all sentences spread over the sphere (Wang and Isola, 2020). Less is better.",
    ),
    "weat": _Group(
        "Associations of words (WEAT)",
        "The effect size d says how much nearer the first targets are to the first attributes than "
        "the second targets are, in standard deviations; p is one-sided. A high p does not show "
        "that an encoder is free of bias: the test finds associations, it cannot rule them out.",
    ),
    "seat": _Group(
        "Associations of words in sentences (SEAT)", "The same with words in short sentences."
    ),
}
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


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a report.

    Attributes:
        caption: Says what the numbers are, with their unit and aggregation.
        corner: The heading of the column of `rows`' names.
        heads: The headings of the other columns.
        rows: Name and cells of each row.
        notes: Protocols, each with the tasks that have it.
        cautions: Why numbers of one column cannot be compared.
        title: The table's own title, or "" if the section's title is enough.
        long: Whether the page folds it.
    """

    caption: str
    corner: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    title: str = ""
    long: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a report: its anchor, heading, introduction, tables and plots."""

    name: str
    title: str
    lead: str
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()


def check_names(records: Records) -> None:
    """Checks that there are records, and that each has a different name.

    Raises:
        ValueError: There are no records, or two have the same name.
    """
    if not records:
        raise ValueError("Expected the records of one model or more, received none.")
    names = [name_of(record) for record in records]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Expected a different name for each model, received {', '.join(repeated)} more than "
            "once. `use-st5 report NAME=FILE` gives the model of a file another name."
        )


def baseline_of(records: Records, name: str | None = None) -> EvaluationRecord:
    """The record that the others are compared with: that of the named model, or the first.

    Raises:
        ValueError: No model has the name.
    """
    if name is None:
        return records[0]
    for record in records:
        if name_of(record) == name:
            return record
    names = ", ".join(map(name_of, records))
    raise ValueError(f"baseline: expected one of {names}; received {name}.")


def report_sections(records: Records, baseline: str | None = None) -> list[Section]:
    """The overview, a section for each group of tasks, and all scores; see `write_report`."""
    base = baseline_of(records, baseline)
    present_groups = dict.fromkeys(
        task["group"] for each in records for task in each.tasks.values()
    )
    groups = [
        *(name for name in _GROUPS if name in present_groups),
        *(n for n in present_groups if n not in _GROUPS),
    ]
    sections = (_section(records, base, name) for name in groups)
    return [_overview(records, base), *sections, _scores(records)]


def _section(records: Records, base: EvaluationRecord, group: str) -> Section:
    tasks = _tasks_of(records, group)
    group_info = _GROUPS.get(group, _Group(group.replace("_", " ").capitalize(), ""))
    plots: list[Plot | None] = []
    if group in ("tatoeba", "minimal_pairs", "geometry") and group in tasks:
        table = _task_table(records, group, tasks, higher=group != "geometry")
        plots = [geometry_plot(records)] if group == "geometry" else []
    elif group in ("weat", "seat"):
        table, plots = _bias_table(records, tasks), [bias_plot(records, tasks)]
    else:
        table = _score_table(records, tasks, group_info.average)
        plots = [*_differences(records, base, tasks)]
    return Section(group, group_info.title, group_info.lead, (table,), tuple(filter(None, plots)))


def _tasks_of(records: Records, group: str) -> Tasks:
    """Name → the task's entry in the first record that has it."""
    tasks: Tasks = {}
    for record in records:
        for name, task in record.tasks.items():
            if task["group"] == group:
                tasks.setdefault(name, task)
    return tasks


def score_cell(value: float | None, statistic: str) -> Cell:
    """The cell of a score in its natural unit, by the name of the score."""
    if value is None:
        return Cell(MISSING)
    if math.isnan(value):
        return Cell(UNDEFINED)
    scaled_value = value * 100 if statistic.split("_")[0] in _STATISTICS else value
    digits = 3 if statistic.startswith(("alignment", "uniformity", "p_value")) else 2
    return Cell(number(scaled_value, digits), scaled_value)


def number(value: float, digits: int) -> str:
    """A number with a true minus sign, and no minus before a zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def describe(statistic: str) -> str:
    """A score in words: what is computed, in which unit, by which aggregation."""
    kind, _, rest = statistic.partition("_")
    if kind not in _STATISTICS:
        return statistic.replace("_", " ")
    words = f"{_STATISTICS[kind]} × 100"
    if rest.startswith("angular"):
        rest = rest.removeprefix("angular").removeprefix("_")
        words += " of the angular similarity"
    if rest == "dev":
        return f"{words} on the validation data that chose its threshold"
    if rest in _AGGREGATIONS:
        return f"{words}, aggregation {_AGGREGATIONS[rest]}"
    return f"{words}, {rest.replace('_', ' ')}" if rest else words


def mark_best(cells: Sequence[Cell], *, higher: bool = True) -> list[Cell]:
    """Marks the best of two or more cells, and all cells that show the same number."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return [*cells]
    best = max(values) if higher else min(values)
    texts = {cell.text for cell in cells if cell.value == best}
    return [cell._replace(best=cell.text in texts) for cell in cells]


def cautions(records: Records, names: Iterable[str]) -> tuple[str, ...]:
    """The reasons why models' scores of tasks cannot be compared; empty if all can."""
    titles: dict[str, list[str]] = {}
    for name in names:
        tasks = [record.tasks[name] for record in records if name in record.tasks]
        ways = {json.dumps([t["main"], t["protocol"], t["options"]], sort_keys=True) for t in tasks}
        data = {tuple(sorted(task["data"].values())) for task in tasks}
        for variants, what in ((ways, "by different protocols"), (data, "on different data files")):
            if len(variants) > 1:
                titles.setdefault(what, []).append(tasks[0]["title"])
    return tuple(
        f"{', '.join(names)}: the models were measured {what}." for what, names in titles.items()
    )


def _column(
    records: Records, names: Sequence[str], score: str | None = None, *, higher: bool = True
) -> list[Cell]:
    """The cells of the mean over tasks, by default of their main scores; the best is marked.

    The mean of a model that lacks one of the tasks is missing.
    """
    cells = []
    for record in records:
        values = [value for name in names if (value := score_of(record, name, score)) is not None]
        mean = sum(values) / len(values) if len(values) == len(names) else None
        main = record.tasks[names[0]]["main"] if names[0] in record.tasks else ""
        cells.append(score_cell(mean, score or main))
    return cells if cautions(records, names) else mark_best(cells, higher=higher)


def _model_table(
    records: Records, columns: dict[str, list[Cell]], caption: str, tasks: Tasks, title: str = ""
) -> Table:
    """A row for each model."""
    rows = zip(map(name_of, records), zip(*columns.values(), strict=True), strict=True)
    return Table(
        caption=caption,
        corner="Model",
        heads=tuple(columns),
        rows=tuple((name, tuple(cells)) for name, cells in rows),
        notes=tuple(_protocols(tasks)),
        cautions=cautions(records, tasks),
        title=title,
    )


def _score_table(records: Records, tasks: Tasks, average: Sequence[str]) -> Table:
    """The main scores: the papers' tasks first, then their mean if all are there, then others."""
    ordered = {name: tasks[name] for name in average if name in tasks} | tasks
    columns: dict[str, list[Cell]] = {}
    for place, (name, task) in enumerate(ordered.items(), start=1):
        columns[task["title"]] = _column(records, [name])
        if place == len(average) and set(average) <= tasks.keys():
            columns["Avg."] = _column(records, average)
    titles: dict[str, list[str]] = {}
    for name, task in ordered.items():
        for main in sorted({r.tasks[name]["main"] for r in records if name in r.tasks}):
            titles.setdefault(describe(main), []).append(task["title"])
    words = [f"{', '.join(names)}: {what}." for what, names in titles.items()]
    if len(titles) == 1:
        (only,) = titles
        words = [f"{only[:1].upper()}{only[1:]}."]
    return _model_table(records, columns, " ".join(words), ordered)


def _task_table(records: Records, name: str, tasks: Tasks, *, higher: bool = True) -> Table:
    """All scores of one task, one per column."""
    scores = dict.fromkeys(
        score for each in records if name in each.tasks for score in each.tasks[name]["scores"]
    )
    columns = {
        score.replace("_", " "): _column(records, [name], score, higher=higher) for score in scores
    }
    unit = "Accuracy × 100." if higher else "Less is better."
    return _model_table(records, columns, unit, {name: tasks[name]})


def _bias_table(records: Records, tests: Tasks) -> Table:
    """A row for each test: effect size d, its interval, and p."""
    rows = []
    for name, task in tests.items():
        label = " × ".join(categories(task))
        cells = tuple(_bias_cell(record, name) for record in records)
        rows.append((f"{task['title']} ({label})" if label else task["title"], cells))
    return Table(
        caption="Effect size d, its 95 % bootstrap interval, and the one-sided p.",
        corner="Test",
        heads=tuple(map(name_of, records)),
        rows=tuple(rows),
        notes=tuple(_protocols(tests)),
        cautions=cautions(records, tests),
    )


def _bias_cell(record: EvaluationRecord, test: str) -> Cell:
    cell = score_cell(score_of(record, test, "effect_size"), "effect_size")
    if cell.value is None:
        return cell
    low, high, p = (
        score_of(record, test, name) for name in ("effect_size_low", "effect_size_high", "p_value")
    )
    parts = []
    if low is not None and high is not None and not math.isnan(low + high):
        parts.append(f"{number(low, 2)} to {number(high, 2)}")
    if p is not None:
        p_text = UNDEFINED if math.isnan(p) else f"= {p:.3f}"
        parts.append("p < 0.001" if p < 0.001 else f"p {p_text}")
    return cell._replace(text=f"{cell.text} ({'; '.join(parts)})" if parts else cell.text)


def _overview(records: Records, base: EvaluationRecord) -> Section:
    """The models, and their means over those tasks of the papers that all of them have."""
    dimensions = [record.model["dimension"] for record in records]
    columns = {
        "Dimension": [Cell(MISSING if d is None else f"{d:,}", d) for d in dimensions],
        "Tasks": [Cell(f"{len(each.tasks):,}", len(each.tasks)) for each in records],
    }
    differences: dict[str, list[Cell]] = {}
    for title, names in shared_tasks(records).items():
        columns[title] = _column(records, names)
        if not cautions(records, names):
            mean_differences = [_mean_difference(record, base, names) for record in records]
            differences[title] = [*map(_difference_cell, mean_differences)]
    caption = (
        "Means × 100 over the tasks of the papers' tables that every model here has; “2 of 7” is a "
        "mean of two of seven, which cannot be compared with the papers' averages."
    )
    tables = [_model_table(records, columns, caption, {})]
    if differences and len(records) > 1:
        name = name_of(base)
        places = [place for place, record in enumerate(records) if record is not base]
        part = {title: [cells[n] for n in places] for title, cells in differences.items()}
        words = f"Points more or less than {name}, with 95 % intervals. {_INTERVALS}"
        tables.append(
            _model_table([records[n] for n in places], part, words, {}, f"Difference to {name}")
        )
    return Section("overview", "At a glance", "", tuple(tables))


_INTERVALS = (
    "Bold: the interval leaves out 0. The intervals tell how much other sentences of the same kind "
    "would change a difference. They assume that each model was measured on other sentences. "
    "Therefore they are too wide. Those of means treat the sentences of the tasks as different, "
    "though STS-B has some of STS12 to STS16. They do not include the effect of training again."
)


def shared_tasks(records: Records) -> dict[str, list[str]]:
    """Title of a group, with the share of its tasks that all models have → these tasks."""
    tasks_by_title = {}
    for group in (each for each in _GROUPS.values() if each.average):
        shared = [name for name in group.average if all(name in each.tasks for each in records)]
        if shared:
            part = f"{len(shared)} of {len(group.average)}"
            part = "avg." if len(shared) == len(group.average) else part
            tasks_by_title[f"{group.title}, {part}"] = shared
    return tasks_by_title


def _mean_difference(
    record: EvaluationRecord, base: EvaluationRecord, names: Sequence[str]
) -> Difference | None:
    differences = [difference(record.tasks[name], base.tasks[name]) for name in names]
    defined = [each for each in differences if each is not None]
    return mean_difference(defined) if len(defined) == len(differences) else None


def _difference_cell(found: Difference | None) -> Cell:
    if found is None:
        return Cell(UNDEFINED, math.nan)
    low, value, high = (_signed(100 * each) for each in (found.low, found.value, found.high))
    interval = "" if math.isnan(found.low) else f" ({low} to {high})"
    return Cell(f"{value}{interval}", 100 * found.value, found.clear)


def _signed(value: float) -> str:
    text = number(value, 2)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def _differences(records: Records, base: EvaluationRecord, tasks: Tasks) -> Iterator[Plot]:
    """The plot of those differences to the baseline that have intervals, by task."""
    differences: dict[str, dict[str, Difference]] = {}
    for record in records:
        for name, task in tasks.items():
            both = record is not base and name in record.tasks and name in base.tasks
            if both and not cautions([record, base], [name]):
                task_difference = difference(record.tasks[name], base.tasks[name])
                if task_difference is not None and not math.isnan(task_difference.low):
                    differences.setdefault(task["title"], {})[name_of(record)] = task_difference
    if differences:
        yield difference_plot(records, name_of(base), differences)


def _scores(records: Records) -> Section:
    """All scores of all tasks, one per row."""
    names = dict.fromkeys(name for record in records for name in record.tasks)
    rows = []
    for name in names:
        tasks = [record.tasks[name] for record in records if name in record.tasks]
        for score in dict.fromkeys(score for task in tasks for score in task["scores"]):
            cells = tuple(score_cell(score_of(each, name, score), score) for each in records)
            rows.append((f"{tasks[0]['title']}: {describe(score)}", cells))
    table = Table(
        title="All scores of all tasks",
        caption="Each in the unit of its name.",
        corner="Score",
        heads=tuple(map(name_of, records)),
        rows=tuple(rows),
        long=True,
    )
    return Section("every-score", "Every score", "", (table,))


def _protocols(tasks: Tasks) -> Iterator[str]:
    """Each protocol once, with its options and the tasks that have it."""
    titles: dict[str, list[str]] = {}
    for task in tasks.values():
        options = "; ".join(f"{name} = {value}" for name, value in task["options"].items())
        words = task["protocol"].rstrip(".")
        protocol = f"{words[:1].upper()}{words[1:]}." + (f" Options: {options}." if options else "")
        titles.setdefault(protocol, []).append(task["title"])
    for protocol, names in titles.items():
        yield f"{', '.join(names)}: {protocol}"
