"""Tables 2 and 3 of the USE paper: transfer with sentence vectors, with words, and with both.

    python -m experiments.use.transfer_tables --data DATA --out runs/transfer_tables
    python -m experiments.use.transfer_tables --data DATA --tasks trec \
        --rows use_dan_en,cnn_lrn --repeats 3

The tables give the accuracy of transfer models (`experiments.use.transfer`) on MR, CR, SUBJ, MPQA,
TREC and binary SST, and on SST with 1,000 to 32,000 training phrases. Tasks whose data is not in
DATA are left out.

Rows are named after their parts: a frozen sentence encoder (`use_dan_en`), a CNN or a DAN on words
whose vectors are pretrained (`cnn_w2v`, `dan_w2v`) or learned on the task (`cnn_lrn`, `dan_lrn`),
and each encoder with each of these side by side (`use_dan_en+cnn_w2v`). The pretrained vectors are
skip-grams of the novels, trained here by gensim, or those of a file of word2vec or GloVe
(`--vectors FILE`).

For each row and task, KerasTuner tunes hyper-parameters on development texts only. Then come the
repeats, each with its own seed; only they are scored on test texts. If a task has no development
part, a tenth of its training texts is held back; if it has no test part either, the repeats are
folds of a cross-validation of the rest (`experiments.use.transfer.splits.split`).

`cells/` keeps each finished row of a task with its hyper-parameters; the same command continues
after the last one. `tables.md` and `results.json` are written after each, from all cells in the
folder, so that rows and tasks may come from several commands.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import rich.console

from experiments.command import main
from experiments.run import read_json
from experiments.use.transfer.cells import TransferCell
from experiments.use.transfer.rows import Ingredients, transfer_rows
from experiments.use.transfer.skip_gram import skip_gram_vectors
from experiments.use.transfer.splits import TASKS
from experiments.use.transfer.tables import tables
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.data import DataFolder
from use_st5.io import atomic_path, sole_writer

# Enough for all words of GloVe's smaller files, and the most frequent words of larger ones.
_MOST_VECTORS = 400_000


def run(
    data: Path,
    output: Path,
    *,
    seed: int = 0,
    tasks: Sequence[str] = (),
    encoders: Sequence[str] = ("use_dan_en",),
    rows: Sequence[str] = (),
    vectors: Path | None = None,
    repeats: int = 10,
    trials: int = 7,
    epochs: int = 10,
) -> dict[str, float]:
    """Fills the tables, cell by cell.

    Args:
        data: Folder of the evaluation sets, and of the novels.
        output: Folder of the cells and the tables.
        seed: The first of the repeats' seeds, and the seed of the search.
        tasks: Some of `TASKS`; none: all tasks whose data is there.
        encoders: Bundled sentence encoders, or folders of others.
        rows: Names of rows; none: all rows.
        vectors: A file of pretrained word vectors, of which the first 400,000 are read; None:
            skip-grams of the novels.
        repeats: Trainings of each cell.
        trials: Settings of hyper-parameters tried for each cell besides the defaults; 0: defaults.
        epochs: The most passes over the training texts.

    Returns:
        Mean accuracy by "task/row", in 0 … 1.
    """
    folder = DataFolder(data)
    all_rows = transfer_rows(encoders)
    chosen_tasks, chosen_rows = tasks or _at_hand(folder), rows or [*all_rows]
    settings: dict[str, Any] = dict(seed=seed, repeats=repeats, trials=trials, epochs=epochs)
    settings["vectors"] = vectors.name if vectors else "skip-gram"
    ingredients = Ingredients(
        output / "vectors", lambda: _word_vectors(data, output, vectors, seed=seed)
    )
    console = rich.console.Console(stderr=True)
    scores = {}
    with sole_writer(output, inside=True):
        for task, name in product(chosen_tasks, chosen_rows):
            path = output / "cells" / f"{task}.{name}.json"
            of_cell = settings | ingredients.settings(row := all_rows[name])
            cell = _finished(path, of_cell)
            if cell is None:
                cell = {"task": task, "row": name, "settings": of_cell}
                cell |= TransferCell(row, task, folder, ingredients, settings).run(console)
                _write(path, json.dumps(cell, indent=1))
            scores[f"{task}/{name}"] = cell["mean"]
            _write_tables(output, [*all_rows])
    return scores


def _word_vectors(data: Path, output: Path, file: Path | None, *, seed: int) -> WordVectors:
    if file is None:
        return skip_gram_vectors(data, output, seed=seed)
    return WordVectors.load(file, limit=_MOST_VECTORS)


def _at_hand(folder: DataFolder) -> list[str]:
    return [
        name
        for name, (dataset, _) in TASKS.items()
        if all(folder.has(source) for source in dataset.sources)
    ]


def _finished(path: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    if not path.exists():
        return None
    cell = read_json(path)
    if cell["settings"] != settings:
        raise ValueError(
            f"{path}: expected a cell made with {settings}, found {cell['settings']}. Choose "
            "another --out, or remove the file."
        )
    return cell


def _write_tables(output: Path, rows: list[str]) -> None:
    """Writes the tables of all finished cells in the folder, including those of earlier runs."""
    records = [read_json(path) for path in sorted(output.glob("cells/*.json"))]
    cells = {(cell["task"], cell["row"]): cell for cell in records}
    _write(output / "results.json", json.dumps(records, indent=1))
    rows = [*dict.fromkeys([*rows, *(row for _, row in cells)])]
    _write(output / "tables.md", tables(cells, rows))


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(run)
