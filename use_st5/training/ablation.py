"""Several recipes, each trained with several seeds: the rows of a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from use_st5._files import atomic_path, sole_writer
from use_st5._records import read_record
from use_st5.training.recipe import Recipe, Scores, StrategyName


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A table of recipes.

    Attributes:
        rows: The recipes by name.
        steps: Optimizer steps of each stage; None: those of the recipes.
        seeds: How many trainings of each row.
    """

    rows: Mapping[str, Recipe]
    steps: int | None = None
    seeds: int = 3

    def run(
        self,
        data: Path,
        output: Path,
        *,
        seed: int = 0,
        steps: int | None = None,
        resume: bool = True,
        strategy: StrategyName | None = None,
        teacher: Path | None = None,
        pretrained: Path | None = None,
        prepared: Path | None = None,
    ) -> Scores:
        """Trains every row with every seed and writes `table.md`.

        Args:
            data: Folder of the corpora.
            output: Folder of the runs and the table.
            seed: The first of the seeds.
            steps: Optimizer steps of each stage; the table's own by default.
            resume: Whether runs that are complete or interrupted are kept.
            strategy: As in `Recipe.run`, on one machine.
            teacher: As in `Recipe.run`; for all runs `teacher` in `output` by default.
            pretrained: As in `Recipe.run`; by default what a run in `output` would start from.
            prepared: As in `Recipe.run`; for all runs `prepared` in `output` by default.

        Returns:
            Mean score by "row/score".
        """
        steps = steps or self.steps
        teacher = teacher or output / "teacher"
        pretrained = pretrained or output.parent / "pretrain_t5"
        scores: dict[str, list[Scores]] = {}
        with sole_writer(output, inside=True):
            for name, recipe in self.rows.items():
                for each in range(seed, seed + self.seeds):
                    folder = output / "_".join([name, *([str(steps)] if steps else []), str(each)])
                    done = folder / "scores.json"
                    if not (resume and done.exists()):
                        recipe.run(
                            data,
                            folder,
                            seed=each,
                            steps=steps,
                            resume=resume,
                            strategy=strategy,
                            prepared=prepared or output / "prepared",
                            teacher=teacher if "teacher" in recipe.folders else None,
                            pretrained=pretrained if "pretrained" in recipe.folders else None,
                        )
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
