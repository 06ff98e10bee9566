"""The tables and plots of the comparison, from the records of its runs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.seed_table import seed_table
from use_st5.evaluation import EvaluationRecord
from use_st5.io import atomic_path
from use_st5.plots import interval_plot

# Row → its name in the paper.
NAMES = {
    "untuned": "w/o FT", "sbert": "SBERT", "defsent": "DefSent", "s_d": "S+D", "d_s": "D+S",
    "multi": "Multi", "average": "Average", "concat": "Concat",
}  # fmt: skip
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
TRANSFER = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
# The rows in the plots: those of the paper's figures, and the combination that is best there.
_FIGURES = ("untuned", "sbert", "defsent", "s_d")
Values = Mapping[str, float]


def records_of(output: Path) -> dict[str, list[EvaluationRecord]]:
    """Row → the records of its seeds, in the order of the paper's tables."""
    by_name = {
        name: [EvaluationRecord.read(path) for path in sorted(_record_files(output, name))]
        for name in NAMES
    }
    return {name: records for name, records in by_name.items() if records}


def _record_files(output: Path, name: str) -> Iterator[Path]:
    pattern = name if name == "untuned" else f"{name}_[0-9]*"
    return output.glob(f"{pattern}/evaluation.json")


def main_scores(records: Mapping[str, Sequence[EvaluationRecord]]) -> dict[str, list[Values]]:
    """Row → a list with task → main score for each seed."""
    return {
        name: [
            {
                task: _number(result["scores"][result["main"]])
                for task, result in record.tasks.items()
            }
            for record in runs
        ]
        for name, runs in records.items()
    }


def _parts(
    records: Mapping[str, Sequence[EvaluationRecord]], task: str, key: str
) -> dict[str, list[Values]]:
    """Row → a list with part of a task → Spearman's correlation for each seed."""
    details = {
        name: [each.tasks[task]["details"][key] for each in runs if task in each.tasks]
        for name, runs in records.items()
    }
    return {
        name: [
            {part: _number(values["spearman"]) for part, values in _named(each).items()}
            for each in runs
        ]
        for name, runs in details.items()
        if runs
    }


def _named(parts: Mapping[str, Values] | Sequence[Values]) -> Mapping[str, Values]:
    """Parts by name; quintiles, which have no names, are named by their bounds."""
    if isinstance(parts, Mapping):
        return parts
    return {f"{each['dice_from']:.2f} to {each['dice_to']:.2f}": each for each in parts}


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def write_results(output: Path) -> None:
    """Writes `tables.md` and the plots of all records in the folder, including earlier runs."""
    records = records_of(output)
    scores = main_scores(records)
    sources, dice = (
        _parts(records, "sts_sources", "sources"),
        _parts(records, "sts_dice", "quintiles"),
    )
    probing = [task for task in [*scores.values()][0][0] if task.startswith("probing_")]
    tables = (
        ("STS, Spearman's correlation over all pairs of a set", _only(scores, STS), True),
        ("STS by source, Spearman's correlation", sources, False),
        ("STS-B by the words that a pair shares (Dice coefficient), Spearman's", dice, False),
        ("Transfer, accuracy", _only(scores, TRANSFER), True),
        ("Probing, accuracy", _only(scores, probing), True),
    )
    text = "\n".join(
        seed_table(title, _as_published(rows), averaged) for title, rows, averaged in tables if rows
    )
    with atomic_path(output / "tables.md") as temporary:
        temporary.write_text(text, encoding="utf-8")
    _write_plots(output, sources, dice, _only(scores, TRANSFER))


def _only(scores: Mapping[str, list[Values]], tasks: Sequence[str]) -> dict[str, list[Values]]:
    """The scores of some tasks, for the rows and runs that have any of them."""
    selection: dict[str, list[Values]] = {
        name: [{task: each[task] for task in tasks if task in each} for each in runs]
        for name, runs in scores.items()
    }
    return {name: scored for name, runs in selection.items() if (scored := [*filter(None, runs)])}


def _as_published(rows: Mapping[str, list[Values]]) -> dict[str, list[Values]]:
    """The rows by their names in the paper."""
    return {NAMES.get(name, name): runs for name, runs in rows.items()}


def _write_plots(
    output: Path,
    sources: Mapping[str, list[Values]],
    dice: Mapping[str, list[Values]],
    transfer: Mapping[str, list[Values]],
) -> None:
    """A plot of each of the rows that there are, if matplotlib is installed."""
    if not importlib.util.find_spec("matplotlib"):
        return
    correlation, words = "Spearman correlation × 100", "by the Dice coefficient of the words"
    plots = {
        "sts_sources": (sources, correlation),
        "sts_dice": (dice, f"{correlation}, {words}"),
        "transfer": (transfer, "Accuracy × 100"),
    }
    for name, (rows, axis) in plots.items():
        if rows:
            labels, series = _series(rows)
            interval_plot(labels, series, axis=axis).savefig(output / f"{name}.svg")


def _series(rows: Mapping[str, list[Values]]) -> tuple[list[str], dict[str, np.ndarray]]:
    """The labels; for each row of `_FIGURES`, the means and their ± one standard deviation."""
    labels = [*dict.fromkeys(column for runs in rows.values() for column in runs[0])]
    series = {}
    for name in _FIGURES:
        if name in rows:
            values = 100 * np.array(
                [[run.get(label, np.nan) for label in labels] for run in rows[name]]
            )
            mean = values.mean(axis=0)
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full_like(mean, np.nan)
            series[NAMES[name]] = np.stack([mean, mean - spread, mean + spread], axis=1)
    return labels, series
