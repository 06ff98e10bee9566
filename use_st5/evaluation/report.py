"""Reports: evaluated models side by side in Markdown, with plots if matplotlib is installed."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from use_st5 import plots
from use_st5._imports import require
from use_st5.evaluation.differences import Difference, difference, mean_difference
from use_st5.evaluation.runner import EvaluationRecord
from use_st5.io.files import atomic_path
from use_st5.io.progress import markdown_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Records = Sequence[EvaluationRecord]
_Tasks = dict[str, dict[str, Any]]

# A score that was not measured and a score without a value are shown differently.
_MISSING, _UNDEFINED = "–", "undefined"
# Scores whose names begin with these words are multiplied by 100.
_TIMES_100 = {"spearman", "pearson", "accuracy", "f1", "auc", "matthews", "precision", "recall"}
_JOINED = re.compile("(?<=[a-z])(?=[A-Z])")
# The tasks of the papers' tables in their order; the papers print the mean of them.
_TRANSFER = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
_PROBES = (
    *("length", "word_content", "depth", "top_constituents", "bigram_shift", "tense"),
    *("subject_number", "object_number", "odd_man_out", "coordination_inversion"),
)
_XSTS = ("ar-ar", "ar-en", "es-es", "es-en", "tr-en")


class _Group(NamedTuple):
    """A group of tasks: its title, the tasks that the papers average, and how to read it."""

    title: str
    average: tuple[str, ...] = ()
    lead: str = ""


_GROUPS = {
    "sts": _Group(
        "Semantic textual similarity",
        ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    ),
    "senteval": _Group("Transfer (SentEval)", _TRANSFER),
    "senteval_sklearn": _Group(
        "Transfer (SentEval, scikit-learn)", tuple(f"{name}_sklearn" for name in _TRANSFER)
    ),
    "probing": _Group("Probing (SentEval)", tuple(f"probing_{name}" for name in _PROBES)),
    "sentglue": _Group("SentGLUE"),
    "pairs": _Group("Pair classification"),
    "minimal_pairs": _Group("Minimal pairs", lead="Counting words scores 0.25, chance 50."),
    "tatoeba": _Group("Finding translations (Tatoeba)"),
    "bucc": _Group(
        "Mining translations (BUCC)", tuple(f"bucc_{each}-en" for each in ("de", "fr", "ru", "zh"))
    ),
    "multilingual_sts": _Group(
        "Similarity in other languages", tuple(f"xsts_{each}" for each in _XSTS)
    ),
    "retrieval": _Group(
        "Retrieval",
        lead="Means over the sets of the folder, which a record lists. BM25 compares words; fused "
        "joins both rankings.",
    ),
    "geometry": _Group("Alignment and uniformity", lead="Less is better."),
    "weat": _Group(
        "Associations of words (WEAT)",
        lead="Effect size d, its 95 % bootstrap interval, and the one-sided p. A high p does not "
        "show that an encoder is free of bias.",
    ),
    "seat": _Group("Associations of words in sentences (SEAT)", lead="As for WEAT."),
}
# Groups whose table has a column for each score of their one task.
_ONE_TASK = ("tatoeba", "minimal_pairs", "retrieval", "geometry")
_INTERVALS = (
    "Differences to a model are points more or less, with 95 % intervals; bold: the interval "
    "leaves out 0. The intervals tell how much other sentences of the same kind would change a "
    "difference. They assume that each model was measured on other sentences. Therefore they are "
    "too wide. Those of means treat the sentences of the tasks as different, though STS-B has some "
    "of STS12 to STS16. They do not include the effect of training again."
)


class _Plot(NamedTuple):
    caption: str
    figure: Figure


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
    base = _baseline(records, baseline)
    drawn = _plots(records, base)
    captions = None if drawn is None else {group: plot.caption for group, plot in drawn.items()}
    text = report_text(records, base, captions)
    pictures = {Path(folder, f"{group}.png"): plot for group, plot in (drawn or {}).items()}
    for path, plot in pictures.items():
        plots.save(plot.figure, path)
    report = Path(folder, "report.md")
    with atomic_path(report) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return [report, *pictures]


def _baseline(records: _Records, name: str | None) -> EvaluationRecord:
    """The record that the others are compared with; checks that names tell the models apart."""
    if not records:
        raise ValueError("Expected the records of one model or more, received none.")
    names = [_name_of(record) for record in records]
    if repeated := sorted({each for each in names if names.count(each) > 1}):
        raise ValueError(
            f"Expected a different name for each model, received {', '.join(repeated)} more than "
            "once. `use-st5 report NAME=FILE` gives the model of a file another name."
        )
    if name is not None and name not in names:
        raise ValueError(f"baseline: expected one of {', '.join(names)}; received {name}.")
    return records[0 if name is None else names.index(name)]


def report_text(
    records: _Records, base: EvaluationRecord, captions: Mapping[str, str] | None
) -> str:
    """The report in Markdown.

    Args:
        records: The records.
        base: The one of the baseline.
        captions: Name of a group → the caption of its plot; None: matplotlib is missing.
    """
    alone = len(records) == 1
    title = _name_of(records[0]) if alone else f"{len(records)} sentence encoders compared"
    blocks = [f"# {markdown_text(title)}", _measured(records), *_overview(records, base)]
    for group in _groups_of(records):
        blocks += _section(records, base, group)
        if caption := (captions or {}).get(group):
            blocks.append(f"![{markdown_text(caption)}]({group}.png)")
    blocks += _not_measured(records)
    if captions is None:
        blocks.append("The plots are missing: they need matplotlib (extra `plots`).")
    return "\n\n".join(blocks) + "\n"


def _measured(records: _Records) -> str:
    """Sentences that say what the report shows."""
    tasks = {name for record in records for name in record.tasks}
    days = sorted({record.created[:10] for record in records})
    when = markdown_text(" to ".join(dict.fromkeys((days[0], days[-1]))))
    return (
        f"Measured on {len(tasks):,} tasks of {len(_groups_of(records))} groups ({when}), by the "
        "protocols of the papers. The best number of a column is bold. “–” means: not measured; "
        "“undefined” has no value."
    )


def _overview(records: _Records, base: EvaluationRecord) -> Iterator[str]:
    """The models, and their means over those tasks of the papers that all of them have."""
    dimensions = [record.model["dimension"] for record in records]
    columns = {
        "Dimension": [_Cell(_MISSING if each is None else f"{each:,}") for each in dimensions],
        "Tasks": [_Cell(f"{len(record.tasks):,}") for record in records],
    }
    means = {}
    for title, average, _ in _GROUPS.values():
        names = [name for name in average if all(name in each.tasks for each in records)]
        part = "avg." if len(names) == len(average) else f"{len(names)} of {len(average)}"
        if names:
            means[f"{title}, {part}"] = names
    columns |= {title: _score_column(records, names) for title, names in means.items()}
    yield _table("Model", map(_name_of, records), columns)
    if means:
        yield (
            "Means × 100 over the tasks of the papers' tables that every model here has; “2 of 7” "
            "is a mean of two of seven, which cannot be compared with the papers' averages."
        )
    if differences := _differences(records, base, means):
        yield differences
    if len(records) > 1:
        yield _INTERVALS


def _differences(
    records: _Records, base: EvaluationRecord, columns: Mapping[str, Sequence[str]]
) -> str:
    """A table of the mean differences to the baseline; `columns`: heading → tasks."""
    others = [record for record in records if record is not base]
    cells = {}
    for title, names in columns.items():
        found = [_difference_to(record, base, names) for record in others]
        if any(found):
            main = base.tasks[names[0]]["main"]
            cells[title] = [_difference_cell(each, main) for each in found]
    corner = f"Difference to {markdown_text(_name_of(base))}"
    return _table(corner, map(_name_of, others), cells) if cells else ""


def _groups_of(records: _Records) -> list[str]:
    """The groups of the measured tasks: the known ones in their order, then others."""
    present = dict.fromkeys(task["group"] for each in records for task in each.tasks.values())
    return [*(n for n in _GROUPS if n in present), *(n for n in present if n not in _GROUPS)]


def _tasks_of(records: _Records, group: str) -> _Tasks:
    """Name → the task's entry in the first record that has it; the papers' tasks come first."""
    tasks: _Tasks = {}
    for record in records:
        for name, task in record.tasks.items():
            if task["group"] == group:
                tasks.setdefault(name, task)
    average = _GROUPS[group].average if group in _GROUPS else ()
    return {name: tasks[name] for name in average if name in tasks} | tasks


def _section(records: _Records, base: EvaluationRecord, group: str) -> Iterator[str]:
    """A group of tasks: heading, table, differences to the baseline, units and protocols."""
    tasks = _tasks_of(records, group)
    title, average, lead = _GROUPS.get(group, _Group(group.replace("_", " ").capitalize()))
    yield f"## {markdown_text(title)}"
    yield from (f"**Not comparable.** {markdown_text(text)}." for text in _cautions(records, tasks))
    names = [_name_of(record) for record in records]
    if group in ("weat", "seat"):
        cells = {_name_of(each): [_bias_cell(each, test) for test in tasks] for each in records}
        yield _table("Test", map(_bias_label, tasks.values()), cells)
    elif group in _ONE_TASK and group in tasks:
        yield _table("Model", names, _columns_of_scores(records, group))
    else:
        columns = {task["title"]: [name] for name, task in tasks.items()}
        means = {"Avg.": average} if average and {*average} <= {*tasks} else {}
        cells = {head: _score_column(records, each) for head, each in (columns | means).items()}
        yield _table("Model", names, cells)
        if differences := _differences(records, base, columns):
            yield differences
    if lead:
        yield lead
    yield "\n".join(_protocols(records, tasks))


def _columns_of_scores(records: _Records, name: str) -> dict[str, list[_Cell]]:
    """The columns of all scores of one task."""
    entries = [record.tasks[name] for record in records if name in record.tasks]
    return {
        score.replace("_", " "): _score_column(records, [name], score, higher=name != "geometry")
        for score in dict.fromkeys(score for entry in entries for score in entry["scores"])
    }


def _protocols(records: _Records, tasks: _Tasks) -> Iterator[str]:
    """Each main score with its protocol and options once, with the tasks that have them."""
    titles: dict[str, list[str]] = {}
    for name, task in tasks.items():
        mains = sorted({each.tasks[name]["main"] for each in records if name in each.tasks})
        scores = " or ".join(f"{main} × 100" if _is_times_100(main) else main for main in mains)
        options = "; ".join(f"{name} = {value}" for name, value in task["options"].items())
        words = f"{scores}. {task['protocol'].rstrip('.')}."
        words += f" Options: {options}." if options else ""
        titles.setdefault(words, []).append(task["title"])
    for words, names in titles.items():
        yield f"- {markdown_text(', '.join(names))}: {markdown_text(words)}"


def _not_measured(records: _Records) -> Iterator[str]:
    """The tasks that were not measured, and why; each reason once for the same models."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for task in dict.fromkeys(t for each in records for t in (*each.skipped, *each.failed)):
        names: dict[str, list[str]] = {}
        for record in records:
            if why := record.skipped.get(task) or record.failed.get(task):
                names.setdefault(why, []).append(_name_of(record))
        for why, models in names.items():
            reasons.setdefault((why, ", ".join(models)), []).append(task)
    if reasons:
        yield "## Not measured"
        yield "\n".join(
            f"- {markdown_text(', '.join(tasks))} ({markdown_text(models)}): {markdown_text(why)}"
            for (why, models), tasks in reasons.items()
        )


def _plots(records: _Records, base: EvaluationRecord) -> dict[str, _Plot] | None:
    """Name of a group → its plot; None if matplotlib is missing."""
    try:
        require("matplotlib", "plots")
    except ImportError:
        return None
    groups = [group for group in _groups_of(records) if group in _GROUPS]
    drawn = {group: _plot(records, base, group) for group in groups}
    return {group: plot for group, plot in drawn.items() if plot is not None}


def _plot(records: _Records, base: EvaluationRecord, group: str) -> _Plot | None:
    """What the plot of a group shows; None if it has nothing to show."""
    tasks = _tasks_of(records, group)
    if group == "geometry":
        return _geometry_plot(records)
    if group in ("weat", "seat"):
        bars = {_name_of(each): [_bias_values(each, test) for test in tasks] for each in records}
        caption = (
            "Effect sizes with their 95 % intervals. To the right of 0, the first targets are "
            "nearer to the first attributes."
        )
        labels = [*map(_bias_label, tasks.values())]
        return _Plot(caption, plots.interval_plot(labels, bars, axis="effect size d"))
    return None if group in _ONE_TASK else _difference_plot(records, base, tasks)


def _geometry_plot(records: _Records) -> _Plot | None:
    """A point for each model, as in Figure 4 of the Sentence-T5 paper."""
    points = {}
    for record in records:
        x, y = (_score_of(record, "geometry", n) for n in ("uniformity", "alignment_above_4"))
        if x is not None and y is not None and math.isfinite(x + y):
            points[_name_of(record)] = (x, y)
    if not points:
        return None
    x_name, y_name = "uniformity (less: more even)", "alignment, positives > 4 (less: closer)"
    caption = "Alignment against uniformity. The lower left corner is best."
    return _Plot(caption, plots.point_plot(points, x=x_name, y=y_name))


def _difference_plot(records: _Records, base: EvaluationRecord, tasks: _Tasks) -> _Plot | None:
    """Those differences to the baseline that have intervals, by task."""
    others = [record for record in records if record is not base]
    rows = {}
    for name, task in tasks.items():
        found = [_difference_to(record, base, [name]) or Difference(math.nan) for record in others]
        if any(math.isfinite(each.low) for each in found):
            rows[task["title"]] = [[100 * value for value in each] for each in found]
    if not rows:
        return None
    series = {_name_of(other): [row[n] for row in rows.values()] for n, other in enumerate(others)}
    caption = (
        f"Difference to {_name_of(base)} by task, with 95 % intervals. To the right of 0 a "
        "model is better."
    )
    return _Plot(caption, plots.interval_plot([*rows], series, axis="difference × 100"))


class _Cell(NamedTuple):
    """A cell: its text, its number for comparisons (or None), and whether it is bold."""

    text: str
    value: float | None = None
    bold: bool = False


def _table(corner: str, names: Iterable[str], columns: Mapping[str, Sequence[_Cell]]) -> str:
    """A table in Markdown.

    Args:
        corner: The heading of the first column.
        names: The names of the rows.
        columns: Heading → the cells of the other columns.
    """
    lines = [[corner, *map(markdown_text, columns)], ["---", *["--:"] * len(columns)]]
    for name, *cells in zip(names, *columns.values(), strict=True):
        texts = [f"**{text}**" if bold else text for text, _, bold in cells]
        lines.append([markdown_text(name), *texts])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _name_of(record: EvaluationRecord) -> str:
    """The model's name on one line."""
    return " ".join(str(record.model["name"]).split())


def _score_of(record: EvaluationRecord, task: str, name: str | None = None) -> float | None:
    """A score, by default the task's main one, in its natural unit.

    None if it was not measured, NaN if it is undefined.
    """
    entry = record.tasks.get(task)
    if entry is None or (key := name or entry["main"]) not in entry["scores"]:
        return None
    value = entry["scores"][key]
    return math.nan if value is None else float(value)


def _number(value: float, digits: int = 2) -> str:
    """A number with a true minus sign, and no minus before a zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def _is_times_100(score: str) -> bool:
    """Whether a score of this name is shown multiplied by 100."""
    return score.split("_")[0] in _TIMES_100


def _score_cell(value: float | None, score: str) -> _Cell:
    """The cell of a score, by its name."""
    if value is None:
        return _Cell(_MISSING)
    if math.isnan(value):
        return _Cell(_UNDEFINED)
    shown = value * 100 if _is_times_100(score) else value
    return _Cell(_number(shown, 3 if score.startswith(("alignment", "uniformity")) else 2), shown)


def _score_column(
    records: _Records, names: Sequence[str], score: str | None = None, *, higher: bool = True
) -> list[_Cell]:
    """The cells of the mean over tasks, by default of their main scores; the best is bold.

    The mean of a model that lacks one of the tasks is missing.
    """
    cells = []
    for record in records:
        values = [value for name in names if (value := _score_of(record, name, score)) is not None]
        mean = sum(values) / len(values) if len(values) == len(names) else None
        main = record.tasks[names[0]]["main"] if names[0] in record.tasks else ""
        cells.append(_score_cell(mean, score or main))
    return cells if _cautions(records, names) else _mark_best(cells, higher=higher)


def _mark_best(cells: Sequence[_Cell], *, higher: bool = True) -> list[_Cell]:
    """Makes the best of two or more cells bold, and all cells that show the same number."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return [*cells]
    best = max(values) if higher else min(values)
    texts = {cell.text for cell in cells if cell.value == best}
    return [cell._replace(bold=cell.text in texts) for cell in cells]


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


def _difference_to(
    record: EvaluationRecord, base: EvaluationRecord, names: Sequence[str]
) -> Difference | None:
    """The mean difference over tasks; None if one is not in both records or cannot be compared."""
    both = all(name in each.tasks for each in (record, base) for name in names)
    if not both or _cautions((record, base), names):
        return None
    found = [difference(record.tasks[name], base.tasks[name]) for name in names]
    defined = [each for each in found if each is not None]
    return mean_difference(defined) if len(defined) == len(found) else Difference(math.nan)


def _difference_cell(found: Difference | None, score: str) -> _Cell:
    """The cell of a difference of scores of this name; bold if its interval leaves out 0."""
    if found is None or math.isnan(found.value):
        return _Cell(_MISSING if found is None else _UNDEFINED)
    factor = 100 if _is_times_100(score) else 1
    value, low, high = (_signed(factor * each) for each in found)
    interval = "" if math.isnan(found.low) else f" ({low} to {high})"
    return _Cell(f"{value}{interval}", found.value, found.clear)


def _signed(value: float) -> str:
    text = _number(value)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def _bias_label(task: dict[str, Any]) -> str:
    """The title of an association test, with its targets and attributes if it names them."""
    # The sent-bias files write them as one word each: EuropeanAmericanNames.
    names = [_JOINED.sub(" ", name) for name in task["details"].get("categories", ())]
    words = " ({} / {} × {} / {})".format(*names) if names else ""
    return f"{task['title']}{words}"


def _bias_values(record: EvaluationRecord, test: str) -> list[float]:
    """Effect size and the ends of its interval; NaN for what is missing."""
    names = ("effect_size", "effect_size_low", "effect_size_high")
    values = [_score_of(record, test, name) for name in names]
    return [math.nan if value is None else value for value in values]


def _bias_cell(record: EvaluationRecord, test: str) -> _Cell:
    """Effect size, its interval and p."""
    cell = _score_cell(_score_of(record, test, "effect_size"), "effect_size")
    if cell.value is None:
        return cell
    _, low, high = _bias_values(record, test)
    p = _score_of(record, test, "p_value")
    parts = [] if math.isnan(low + high) else [f"{_number(low)} to {_number(high)}"]
    if p is not None:
        p_text = f"p {_UNDEFINED}" if math.isnan(p) else f"p = {p:.3f}"
        parts.append(r"p \< 0.001" if p < 0.001 else p_text)
    return cell._replace(text=f"{cell.text} ({'; '.join(parts)})" if parts else cell.text)
