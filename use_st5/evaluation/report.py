"""Reports: evaluated models side by side in Markdown, with plots if matplotlib is installed."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from use_st5 import plots
from use_st5._imports import require
from use_st5.evaluation.runner import EvaluationRecord
from use_st5.io.files import atomic_path
from use_st5.io.progress import markdown_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Records = Sequence[EvaluationRecord]
_Tasks = dict[str, dict[str, Any]]
# A number and the ends of its 95 % interval, NaN if there is none.
_Interval = tuple[float, float, float]

# A score that was not measured and a score without a value are shown differently.
_MISSING, _UNDEFINED = "–", "undefined"
# Scores whose names begin with these words are multiplied by 100.
_TIMES_100 = {"spearman", "pearson", "accuracy", "f1", "auc", "matthews", "precision", "recall"}
# The number of rows that a score is computed on is the first of these counts that the record has.
# Cross-validation scores each row of its training data, and has only the count "train".
_ROWS = ("test", "dev", "pairs", "items", "train")
_Z = 1.959964  # 95 % of a normal distribution lie within ± this
_TITLES = {
    "sts": "Semantic textual similarity",
    "senteval": "Transfer (SentEval)",
    "probing": "Probing (SentEval)",
    "sentglue": "SentGLUE",
    "pairs": "Pair classification",
    "minimal_pairs": "Minimal pairs",
    "tatoeba": "Finding translations (Tatoeba)",
    "bucc": "Mining translations (BUCC)",
    "ntrex": "Finding translations (NTREX)",
    "mkqa": "Finding translations of questions (MKQA)",
    "multilingual_sts": "Similarity in other languages",
    "multilingual_sts_dev": "Similarity in other languages, to choose models",
    "xnli": "Classification across languages (XNLI)",
    "retrieval": "Retrieval",
    "geometry": "Alignment and uniformity",
    "weat": "Associations of words (WEAT)",
    "seat": "Associations of words in sentences (SEAT)",
    "mteb": "Tasks of mteb",
}
_PROBES = (
    *("length", "word_content", "depth", "top_constituents", "bigram_shift", "tense"),
    *("subject_number", "object_number", "odd_man_out", "coordination_inversion"),
)
# The tasks of the papers' tables in their order; the papers print the mean of them.
_AVERAGES = {
    "sts": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    "senteval": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
    "probing": tuple(f"probing_{name}" for name in _PROBES),
    "bucc": ("bucc_de-en", "bucc_fr-en", "bucc_ru-en", "bucc_zh-en"),
    "multilingual_sts": tuple(f"xsts_{x}" for x in ("ar-ar", "ar-en", "es-es", "es-en", "tr-en")),
}
_LEADS = {
    "minimal_pairs": "Counting words scores 0.25, chance 50.",
    "retrieval": "Means over the sets of the folder, which a record lists. BM25 compares words; "
    "fused joins both rankings.",
    "geometry": "Less is better.",
    "weat": "Effect size d, its 95 % bootstrap interval, and the one-sided p. A high p does not "
    "show that an encoder is free of bias.",
    "seat": "As for WEAT.",
}
# Groups whose table has a column for each score of their one task.
_ONE_TASK = ("tatoeba", "ntrex", "mkqa", "xnli", "minimal_pairs", "retrieval", "geometry")
_BIAS = ("weat", "seat")
_LOWER_IS_BETTER = ("alignment", "uniformity")
_BIAS_CAPTION = (
    "Effect sizes with their 95 % intervals. To the right of 0, the first targets are nearer to "
    "the first attributes."
)
_BETTER = "with 95 % intervals. To the right of 0 a model is better."
_INTERVALS = (
    "Differences to a model are points more or less, with 95 % intervals; bold: the interval "
    "leaves out 0. The intervals assume that each model was measured on other sentences, and that "
    "tasks share none. They do not include the effect of training again."
)


def write_report(
    records: _Records, folder: str | os.PathLike[str], *, baseline: str | None = None
) -> list[Path]:
    """Compares models in a Markdown file, and in plots if matplotlib is installed.

    Older files of the same names in the folder are replaced, other files stay.

    Args:
        records: Records that `use-st5 evaluate` wrote, one per model, in the order to show them.
        folder: The folder for the files; it is created if it does not exist.
        baseline: The name of the model that the others are compared with; None: the first.

    Returns:
        The paths of the written files: `report.md` and the plots that it shows, `GROUP.png`.

    Raises:
        ValueError: There are no records, two have the same name, or none has the baseline's name.
    """
    names = [_name_of(record) for record in records]
    if not names or len({*names}) < len(names):
        expected = "Expected records of models with different names"
        raise ValueError(f"{expected}, received {', '.join(names) or 'none'}.")
    if baseline is not None and baseline not in names:
        raise ValueError(f"baseline: expected one of {', '.join(names)}; received {baseline}.")
    base = records[0 if baseline is None else names.index(baseline)]
    drawn = _plots(records, base)
    captions = None if drawn is None else {group: caption for group, (caption, _) in drawn.items()}
    text = report_text(records, base, captions)
    pictures = [Path(folder, f"{group}.png") for group in drawn or ()]
    for path, (_, figure) in zip(pictures, (drawn or {}).values(), strict=True):
        plots.save(figure, path)
    report = Path(folder, "report.md")
    with atomic_path(report) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return [report, *pictures]


def report_text(
    records: _Records, base: EvaluationRecord, captions: Mapping[str, str] | None
) -> str:
    """The report in Markdown.

    Args:
        records: The records.
        base: The one of the baseline.
        captions: Name of a group → the caption of its plot; None: matplotlib is missing.
    """
    alone, groups = len(records) == 1, _groups_of(records)
    title = _name_of(records[0]) if alone else f"{len(records)} sentence encoders compared"
    tasks = {name for record in records for name in record.tasks}
    days = sorted({record.created[:10] for record in records})
    when = markdown_text(" to ".join(dict.fromkeys((days[0], days[-1]))))
    measured = (
        f"Measured on {len(tasks):,} tasks of {len(groups)} groups ({when}), by the protocols of "
        "the papers. The best number of a column is bold. “–” means: not measured; “undefined” has "
        "no value."
    )
    blocks = [f"# {markdown_text(title)}", measured, *_overview(records, base)]
    for group in groups:
        blocks += _section(records, base, group)
        if caption := (captions or {}).get(group):
            blocks.append(f"![{markdown_text(caption)}]({group}.png)")
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for task, why in {**record.skipped, **record.failed}.items():
            reasons.setdefault((_name_of(record), why), []).append(task)
    if reasons:
        lines = (f"{name}: {', '.join(names)}: {why}" for (name, why), names in reasons.items())
        blocks += ["## Not measured", "\n".join(f"- {markdown_text(line)}" for line in lines)]
    if captions is None:
        blocks.append("The plots are missing: they need matplotlib (extra `plots`).")
    return "\n\n".join(blocks) + "\n"


def _overview(records: _Records, base: EvaluationRecord) -> Iterator[str]:
    """The models, and their means over those tasks of the papers that all of them have."""
    dimensions = [record.model["dimension"] for record in records]
    columns = {
        "Dimension": [_MISSING if number is None else f"{number:,}" for number in dimensions],
        "Tasks": [f"{len(record.tasks):,}" for record in records],
    }
    means = {}
    for group, average in _AVERAGES.items():
        names = [name for name in average if all(name in record.tasks for record in records)]
        part = "avg." if len(names) == len(average) else f"{len(names)} of {len(average)}"
        if names:
            means[f"{_TITLES[group]}, {part}"] = names
    columns |= {title: _score_column(records, names) for title, names in means.items()}
    yield _table("Model", map(_name_of, records), columns)
    if means:
        yield (
            "Means × 100 over the tasks of the papers' tables that every model here has; “2 of 7” "
            "is a mean of two of seven, which cannot be compared with the papers' averages."
        )
    yield from _differences(records, base, means)
    if len(records) > 1:
        yield _INTERVALS


def _section(records: _Records, base: EvaluationRecord, group: str) -> Iterator[str]:
    """A group of tasks: heading, table, differences to the baseline, units and protocols."""
    tasks, names = _tasks_of(records, group), [_name_of(record) for record in records]
    yield f"## {markdown_text(_TITLES.get(group, group.replace('_', ' ').capitalize()))}"
    yield from (f"**Not comparable.** {markdown_text(text)}." for text in _cautions(records, tasks))
    if group in _BIAS:
        cells = {
            name: [_bias_cell(record, test) for test in tasks]
            for name, record in zip(names, records, strict=True)
        }
        yield _table("Test", map(_bias_label, tasks.values()), cells)
    elif group in _ONE_TASK and group in tasks:
        entries = [record.tasks[group] for record in records if group in record.tasks]
        cells = {
            score.replace("_", " "): _score_column(records, [group], score)
            for score in dict.fromkeys(score for entry in entries for score in entry["scores"])
        }
        yield _table("Model", names, cells)
    else:
        columns = {task["title"]: [name] for name, task in tasks.items()}
        average = _AVERAGES.get(group, ())
        means = {"Avg.": average} if average and {*average} <= {*tasks} else {}
        cells = {head: _score_column(records, part) for head, part in (columns | means).items()}
        yield _table("Model", names, cells)
        yield from _differences(records, base, columns)
    if lead := _LEADS.get(group):
        yield lead
    # Each main score with its protocol and options once, with the tasks that have them.
    titles: dict[str, list[str]] = {}
    for name, task in tasks.items():
        mains = sorted({each.tasks[name]["main"] for each in records if name in each.tasks})
        scores = " or ".join(f"{main} × 100" if _is_times_100(main) else main for main in mains)
        options = "; ".join(f"{name} = {value}" for name, value in task["options"].items())
        words = f"{scores}. {task['protocol'].rstrip('.')}."
        words += f" Options: {options}." if options else ""
        titles.setdefault(words, []).append(task["title"])
    yield "\n".join(
        f"- {markdown_text(', '.join(some))}: {markdown_text(words)}"
        for words, some in titles.items()
    )


def _differences(
    records: _Records, base: EvaluationRecord, columns: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """A table of the mean differences to the baseline, if any; `columns`: heading → tasks.

    A difference is bold if its interval leaves out 0.
    """
    others = [record for record in records if record is not base]
    cells: dict[str, list[str]] = {}
    for title, names in columns.items():
        found = [_difference_to(record, base, names) for record in others]
        for difference in found if any(found) else ():
            factor = 100 if _is_times_100(base.tasks[names[0]]["main"]) else 1
            text = _MISSING if difference is None else _UNDEFINED
            if difference is not None and not math.isnan(difference[0]):
                text, *ends = (f"{factor * x:+z.2f}".replace("-", "−") for x in difference)
                if not math.isnan(difference[1]):
                    text = f"{text} ({' to '.join(ends)})"
                    text = f"**{text}**" if difference[1] > 0 or difference[2] < 0 else text
            cells.setdefault(title, []).append(text)
    if cells:
        corner = f"Difference to {markdown_text(_name_of(base))}"
        yield _table(corner, map(_name_of, others), cells)


def _groups_of(records: _Records) -> list[str]:
    """The groups of the measured tasks: the known ones in their order, then others."""
    present = dict.fromkeys(task["group"] for record in records for task in record.tasks.values())
    return [*(name for name in _TITLES if name in present), *(present.keys() - _TITLES.keys())]


def _tasks_of(records: _Records, group: str) -> _Tasks:
    """Name → the task's entry in the first record that has it; the papers' tasks come first."""
    tasks: _Tasks = {}
    for record in records:
        for name, task in record.tasks.items():
            if task["group"] == group:
                tasks.setdefault(name, task)
    return {name: tasks[name] for name in _AVERAGES.get(group, ()) if name in tasks} | tasks


def _table(corner: str, names: Iterable[str], columns: Mapping[str, Sequence[str]]) -> str:
    """A table in Markdown: the heading and the names of the rows, and heading → cells."""
    lines = [[corner, *map(markdown_text, columns)], ["---", *["--:"] * len(columns)]]
    lines += [
        [markdown_text(name), *cells] for name, *cells in zip(names, *columns.values(), strict=True)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _name_of(record: EvaluationRecord) -> str:
    """The model's name on one line."""
    return " ".join(str(record.model["name"]).split())


def _score_of(record: EvaluationRecord, task: str, name: str | None = None) -> float | None:
    """A score, by default the main one; None if it was not measured, NaN if it is undefined."""
    entry = record.tasks.get(task)
    if entry is None or (key := name or entry["main"]) not in entry["scores"]:
        return None
    value = entry["scores"][key]
    return math.nan if value is None else float(value)


def _number(value: float, digits: int = 2) -> str:
    """A number with a true minus sign, and no minus before a zero."""
    return f"{value:z.{digits}f}".replace("-", "−")


def _is_times_100(score: str) -> bool:
    """Whether a score of this name is shown multiplied by 100."""
    return score.split("_")[0] in _TIMES_100


def _shown(value: float | None, score: str) -> str:
    """The cell of a score, by its name."""
    if value is None or math.isnan(value):
        return _MISSING if value is None else _UNDEFINED
    digits = 3 if score.startswith(_LOWER_IS_BETTER) else 2
    return _number(value * 100 if _is_times_100(score) else value, digits)


def _score_column(records: _Records, names: Sequence[str], score: str | None = None) -> list[str]:
    """The cells of the mean over tasks, by default of their main scores; the best is bold.

    The mean of a model that lacks one of the tasks is missing.
    """
    values: list[float | None] = []
    for record in records:
        scores = [value for name in names if (value := _score_of(record, name, score)) is not None]
        values.append(sum(scores) / len(scores) if len(scores) == len(names) else None)
    mains = (record.tasks[names[0]]["main"] for record in records if names[0] in record.tasks)
    key = score or next(mains, "")
    cells = [_shown(value, key) for value in values]
    measured = [value for value in values if value is not None and not math.isnan(value)]
    if len(measured) < 2 or _cautions(records, names):
        return cells
    best = _shown((min if key.startswith(_LOWER_IS_BETTER) else max)(measured), key)
    return [f"**{cell}**" if cell == best else cell for cell in cells]


def _cautions(records: _Records, names: Iterable[str]) -> list[str]:
    """The reasons why models' scores of tasks cannot be compared; empty if all can."""
    titles: dict[str, list[str]] = {}
    for name in names:
        tasks = [record.tasks[name] for record in records if name in record.tasks]
        ways = {json.dumps([t["main"], t["protocol"], t["options"]], sort_keys=True) for t in tasks}
        data = {tuple(sorted(task["data"].values())) for task in tasks}
        for variants, what in ((ways, "by different protocols"), (data, "on different data files")):
            if len(variants) > 1:
                titles.setdefault(what, []).append(tasks[0]["title"])
    return [
        f"{', '.join(names)}: the models were measured {what}" for what, names in titles.items()
    ]


def _bias_label(task: dict[str, Any]) -> str:
    """The title of an association test, with its targets and attributes if it names them."""
    names = task["details"].get("categories")
    if not isinstance(names, list) or len(names) != 4:
        return str(task["title"])
    # The sent-bias files write them as one word each: EuropeanAmericanNames.
    x, y, a, b = (re.sub("(?<=[a-z])(?=[A-Z])", " ", str(name)) for name in names)
    return f"{task['title']} ({x} / {y} × {a} / {b})"


def _bias_values(record: EvaluationRecord, test: str) -> _Interval:
    """Effect size and the ends of its interval; NaN for what is missing."""
    names = ("effect_size", "effect_size_low", "effect_size_high")
    value, low, high = (_score_of(record, test, name) for name in names)
    return tuple(math.nan if x is None else x for x in (value, low, high))  # type: ignore[return-value]


def _bias_cell(record: EvaluationRecord, test: str) -> str:
    """Effect size, its interval and p."""
    value, low, high = _bias_values(record, test)
    cell = _shown(_score_of(record, test, "effect_size"), "effect_size")
    if math.isnan(value):
        return cell
    parts = [] if math.isnan(low + high) else [f"{_number(low)} to {_number(high)}"]
    if (p := _score_of(record, test, "p_value")) is not None:
        p_text = f"p {_UNDEFINED}" if math.isnan(p) else f"p = {p:.3f}"
        parts.append(r"p \< 0.001" if p < 0.001 else p_text)
    return f"{cell} ({'; '.join(parts)})" if parts else cell


def _difference_to(
    record: EvaluationRecord, base: EvaluationRecord, names: Sequence[str]
) -> _Interval | None:
    """The mean difference over tasks; None if one is not in both records or cannot be compared.

    Half intervals add as squares, as if tasks shared no sentences.
    """
    both = all(name in one.tasks for one in (record, base) for name in names)
    if not both or _cautions((record, base), names):
        return None
    found = [difference(record.tasks[name], base.tasks[name]) for name in names]
    values, lows, highs = np.array(found).T / len(found)
    value = float(values.sum())
    return value, value - math.hypot(*(values - lows)), value + math.hypot(*(highs - values))


def difference(task: dict[str, Any], base: dict[str, Any]) -> _Interval:
    """The main score of a task minus the baseline's, in the score's own unit.

    The interval combines the intervals of the two scores (Newcombe, 1998, method 10; Zou, 2007), as
    if each model were measured on different sentences, so it is wider than necessary.
    """
    (one, low, high), (other, other_low, other_high) = interval(task), interval(base)
    value = one - other
    below = math.hypot(one - low, other_high - other)
    above = math.hypot(high - one, other - other_low)
    return value, value - below, value + above


def interval(task: dict[str, Any]) -> _Interval:
    """A task's main score, and its 95 % interval over samples of its sentences.

    Accuracies have Wilson's interval, correlations over all pairs that of Fisher's z (with Bonett
    and Wright's standard error for Spearman's). The ends are NaN for other scores, and if the
    record has no number of rows or one below 10.
    """
    main, counts = task["main"], task["counts"]
    value = math.nan if task["scores"][main] is None else task["scores"][main]
    rows = next((counts[name] for name in _ROWS if counts.get(name)), 0)
    low = high = math.nan
    if rows < 10 or math.isnan(value):
        pass
    elif main == "accuracy" and 0 <= value <= 1:
        square = _Z * _Z / rows
        middle = (value + square / 2) / (1 + square)
        half = _Z * math.sqrt(value * (1 - value) / rows + square / (4 * rows)) / (1 + square)
        low, high = middle - half, middle + half
    elif main in ("spearman", "spearman_all", "pearson", "pearson_all") and abs(value) < 1:
        factor = 1 + value * value / 2 if main.startswith("spearman") else 1.0
        half = _Z * math.sqrt(factor / (rows - 3))
        low, high = math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)
    return value, low, high


def _plots(records: _Records, base: EvaluationRecord) -> dict[str, tuple[str, Figure]] | None:
    """Name of a group → the caption and the figure of its plot; None if matplotlib is missing.

    Association tests with their intervals, others as differences to the baseline that have one.
    """
    try:
        require("matplotlib", "plots")
    except ImportError:
        return None
    drawn = {}
    for group in (name for name in _groups_of(records) if name in _TITLES.keys() - {*_ONE_TASK}):
        is_bias = group in _BIAS
        models = [record for record in records if is_bias or record is not base]
        rows = {}
        for name, task in _tasks_of(records, group).items():
            if is_bias:
                rows[_bias_label(task)] = [_bias_values(model, name) for model in models]
                continue
            values = [_difference_to(model, base, [name]) or (math.nan,) * 3 for model in models]
            if any(math.isfinite(low) for _, low, _ in values):
                rows[task["title"]] = [(100 * x, 100 * low, 100 * high) for x, low, high in values]
        if rows:
            columns = zip(*rows.values(), strict=True)
            series = dict(zip(map(_name_of, models), columns, strict=True))
            if is_bias:
                axis, caption = "effect size d", _BIAS_CAPTION
            else:
                axis = "difference × 100"
                caption = f"Difference to {_name_of(base)} by task, {_BETTER}"
            drawn[group] = caption, plots.interval_plot([*rows], series, axis=axis)
    return drawn
