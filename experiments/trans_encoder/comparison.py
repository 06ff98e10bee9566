"""Compares Trans-Encoder's variants over several seeds, with their gain over the start.

    python -m experiments.trans_encoder.comparison --data DATA --out runs/trans_encoder
    python -m experiments.trans_encoder.comparison --variants bi_bce,cross_mse,exchanged --data DATA
    python -m experiments.trans_encoder.comparison --pretrained FOLDER --second FOLDER --data DATA

Runs variants of `trans_encoder`, all with the first seed before the second, and writes `tables.md`
after each run. The tables give, for the start, the best bi-encoder and the best cross-encoder,
Spearman's correlation by set, the area under the ROC curve, and the gains over the start, as mean
and standard deviation over the finished seeds. Complete runs are not repeated, and the same command
continues after an interruption. Each run's own `report.md` says which sets were among its pairs.

`--seeds N` is the number of seeds, `--variants` names the variants. The default variants are
self- and mutual distillation, as in the paper's Table 1, and both on pairs mined from text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.command import main
from experiments.run import Scores
from experiments.sbert_defsent.comparison_results import Values
from experiments.seed_table import seed_means, seed_scores, seed_table
from experiments.trans_encoder import train as trans_encoder
from experiments.trans_encoder.report import STS
from use_st5.io import atomic_path, sole_writer

# Row → a list with column → value for each seed.
Rows = dict[str, list[dict[str, float]]]


def run(
    data: Path,
    output: Path,
    *,
    pretrained: Path | None = None,
    second: Path | None = None,
    language_model: Path | None = None,
    second_language_model: Path | None = None,
    seeds: int = 3,
    variants: Sequence[str] = ("self", "mutual", "inductive", "mutual_inductive"),
    **options: Any,
) -> Scores:
    """Trains and scores every variant with every seed.

    Args:
        data: As in `PairDistillation.run`.
        output: Folder of the runs and of `tables.md`.
        pretrained: As in `PairDistillation.run`.
        second: As in `PairDistillation.run`.
        language_model: As in `PairDistillation.run`.
        second_language_model: As in `PairDistillation.run`.
        seeds: The number of seeds.
        variants: Names of `trans_encoder`'s variants, in the order of training.
        **options: `seed` is the first of the seeds. The others are as in `Run`, on one machine.

    Returns:
        Mean over the seeds by "variant: model/set".
    """
    recipes = trans_encoder.VARIANTS
    seed = options.get("seed", 0)
    folders: dict[str, Any] = {
        "pretrained": pretrained,
        "second": second,
        "language_model": language_model,
        "second_language_model": second_language_model,
    }
    with sole_writer(output, inside=True):
        for run_seed in range(seed, seed + seeds):
            for name in variants:
                folder = output / f"{name}_{run_seed}"
                if not (folder / "scores.json").exists():
                    recipes[name].run(data, folder, **folders, **options | {"seed": run_seed})
                _write_tables(output)
    return seed_means(rows_of(output))


def rows_of(output: Path) -> Rows:
    """The complete runs of a folder: "variant: model" → a list with set → score for each seed."""
    rows: Rows = {}
    for name in trans_encoder.VARIANTS:
        for run in seed_scores(output, name):
            for model, scores in _by_model(run).items():
                rows.setdefault(f"{name}: {model}", []).append(scores)
    return rows


def gains_of(rows: Rows) -> Rows:
    """The gain of each model over the start of its student, seed by seed."""
    gains: Rows = {}
    for row, runs in rows.items():
        start = re.sub("(bi|cross)$", "start", row)
        if start != row:
            gains[row] = [
                {column: value - before[column] for column, value in run.items()}
                for run, before in zip(runs, rows[start], strict=True)
            ]
    return gains


def _by_model(scores: Mapping[str, float]) -> Mapping[str, dict[str, float]]:
    models: dict[str, dict[str, float]] = {}
    for name, value in scores.items():
        model, _, task = name.partition("/")
        models.setdefault(model, {})[task] = value
    return models


def _write_tables(output: Path) -> None:
    rows = rows_of(output)
    parts = []
    for heading, columns in (
        ("STS, Spearman's correlation over all pairs of a set", STS),
        ("Pair classification, area under the ROC curve", None),
    ):
        for title, source_rows in (("", rows), (", gain over the start", gains_of(rows))):
            table_rows: dict[str, list[Values]] = {}
            table_rows |= {
                name: [_only(run, columns) for run in runs] for name, runs in source_rows.items()
            }
            if any(runs[0] for runs in table_rows.values()):
                parts.append(seed_table(f"{heading}{title}", table_rows, averaged=True))
    with atomic_path(output / "tables.md") as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")


def _only(run: Mapping[str, float], columns: Sequence[str] | None) -> dict[str, float]:
    """The scores of some columns, in their order; None: of all sets that are not in `STS`."""
    if columns is None:
        return {name: value for name, value in run.items() if name not in STS}
    return {name: run[name] for name in columns if name in run}


if __name__ == "__main__":
    main(run)
