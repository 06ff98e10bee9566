"""Rows of a table, each trained with several seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from use_st5._files import atomic_path
from use_st5._records import read_record

SEEDS = 3


def ablate(
    rows: Iterable[str],
    train: Callable[[str, Path, int], object],
    output: Path,
    *,
    seed: int,
    steps: int | None,
    resume: bool,
) -> dict[str, float]:
    """Trains every row with every seed and writes `table.md`.

    Args:
        rows: Their names.
        train: Given a row, a folder and a seed, trains and writes `scores.json` to the folder.
        output: Folder of the runs and the table.
        seed: The first of the three seeds.
        steps: Optimizer steps of each run, for names and caption; None: those of the recipe.
        resume: Whether runs that are complete are kept.

    Returns:
        Mean score by "row/score".
    """
    scores: dict[str, list[dict[str, float]]] = {}
    for name in rows:
        for each in range(seed, seed + SEEDS):
            folder = output / "_".join([name, *([str(steps)] if steps else []), str(each)])
            done = folder / "scores.json"
            if not (resume and done.exists()):
                train(name, folder, each)
            scores.setdefault(name, []).append(_read_scores(done))
    with atomic_path(output / "table.md") as temporary:
        temporary.write_text(_table(scores, steps), encoding="utf-8")
    return {
        f"{name}/{key}": float(np.mean([run[key] for run in runs]))
        for name, runs in scores.items()
        for key in runs[0]
    }


def _read_scores(path: Path) -> dict[str, float]:
    remedy = "Remove the file: the same command makes it anew."
    return read_record(path, dict[str, float], remedy=remedy)


def _table(scores: dict[str, list[dict[str, float]]], steps: int | None) -> str:
    """The Markdown table: row by row mean ± standard deviation (ddof 1), in points."""
    first = next(iter(scores.values()))
    columns = list(first[0])
    of_each = f", {steps} steps" if steps else ""
    lines = [
        f"{len(first)} seeds{of_each}, mean ± standard deviation x 100.",
        "",
        "| row | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name, runs in scores.items():
        cells = [_mean_and_spread([run[column] for run in runs]) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _mean_and_spread(values: list[float]) -> str:
    points = 100 * np.asarray(values)
    return f"{points.mean():.2f} ± {points.std(ddof=1):.2f}"
