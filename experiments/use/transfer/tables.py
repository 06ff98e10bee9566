"""Finished cells of the transfer tables as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.use.transfer.splits import SIZES, TABLE_2

_PUBLISHED = Path(__file__).parents[1] / "published.json"
Cells = Mapping[tuple[str, str], dict[str, Any]]


def tables(cells: Cells, rows: Iterable[str]) -> str:
    """The finished cells of Table 2 and Table 3, with the paper's figures below the first.

    Args:
        cells: (task, row) → the record of the cell.
        rows: The rows in their order.
    """
    curve = [f"sst2_{size}" for size in SIZES]
    parts = [
        "Accuracy x 100: mean ± standard deviation (ddof 1) of the repeats on test texts.",
        *_table("Table 2", [*TABLE_2], cells, rows, below=_published()),
    ]
    if any(task in curve for task, _ in cells):
        parts += _table("Table 3: SST by training phrases", [*curve, "sst2"], cells, rows)
    return "\n".join(parts) + "\n"


def _table(
    title: str, tasks: list[str], cells: Cells, rows: Iterable[str], *, below: Iterable[str] = ()
) -> list[str]:
    lines = [
        "",
        f"## {title}",
        "",
        f"| row | {' | '.join(tasks)} |",
        "|---" * (len(tasks) + 1) + "|",
    ]
    for row in rows:
        row_cells = [cells.get((task, row)) for task in tasks]
        if any(row_cells):
            lines.append(f"| {row} | " + " | ".join(map(_cell, row_cells)) + " |")
    return [*lines, *below]


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    spread = "" if cell["std"] is None else f" ± {100 * cell['std']:.2f}"
    return f"{100 * cell['mean']:.2f}{spread}"


def _published() -> Iterable[str]:
    """The paper's figures; a question mark if only a recollection of the paper supports them."""
    by_model: dict[str, dict[str, str]] = {}
    for table in json.loads(_PUBLISHED.read_text(encoding="utf-8"))["tables"]:
        for row in table["rows"] if table["benchmark"] == "senteval" else ():
            if row["model"].startswith(("USE", "DAN", "CNN")):
                mark = "" if row.get("confirmed", True) else "?"
                scores = {task: f"{score}{mark}" for task, score in row["scores"].items()}
                by_model.setdefault(row["model"], {}).update(scores)
    for model, scores in by_model.items():
        yield f"| paper: {model} | " + " | ".join(scores.get(task, "") for task in TABLE_2) + " |"
