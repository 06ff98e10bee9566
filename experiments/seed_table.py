"""Scores of runs with several seeds: their means and their table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.run import read_json

# A file beside a run's `scores.json`, with scores on data that its training did not use.
FURTHER = "further_scores.json"


def seed_scores(output: Path, name: str) -> list[dict[str, float]]:
    """The scores, with further ones, of the complete runs `NAME_SEED` of a folder, by seed."""
    return [
        read_json(path)
        | (read_json(further) if (further := path.with_name(FURTHER)).exists() else {})
        for path in sorted(output.glob(f"{name}_*/scores.json"))
        if re.fullmatch(rf"{name}_\d+", path.parent.name)
    ]


def seed_means(rows: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Means over seeds by "row/column" of columns that all seeds have; rows: see `seed_table`."""
    return {
        f"{name}/{column}": float(np.mean([run[column] for run in runs]))
        for name, runs in rows.items()
        for column in runs[0]
        if all(column in run for run in runs)
    }


def seed_table(
    title: str, rows: Mapping[str, Sequence[Mapping[str, float]]], averaged: bool = False
) -> str:
    """A Markdown table: row by row mean ± standard deviation (ddof 1) over the seeds, x 100.

    A cell is empty if a seed of its row has no such value.

    Args:
        title: The title above the table.
        rows: Row → a list with column → value (0 … 1) for each seed.
        averaged: Whether a last column has the mean of the others.
    """
    columns = [*dict.fromkeys(column for runs in rows.values() for column in runs[0])]
    heads = ["", "seeds", *columns, *(["mean"] if averaged else [])]
    lines = [f"## {title}", "", f"| {' | '.join(heads).strip()} |", "|---" * len(heads) + "|"]
    for name, runs in rows.items():
        values = np.array([[run.get(column, np.nan) for column in columns] for run in runs])
        if averaged:
            values = np.hstack([values, values.mean(axis=1, keepdims=True)])
        cells = [_mean_and_spread(column) for column in values.T]
        for place, column in enumerate(columns):
            if any(column not in run for run in runs):
                cells[place] = ""
        lines.append(f"| {' | '.join([name, str(len(runs)), *cells])} |")
    return "\n".join(lines) + "\n"


def _mean_and_spread(values: np.ndarray) -> str:
    mean = f"{100 * values.mean():.2f}"
    return mean if len(values) < 2 else f"{mean} ± {100 * values.std(ddof=1):.2f}"
