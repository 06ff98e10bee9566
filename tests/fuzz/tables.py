"""Attacks on a user's table, and a check of its reader: no row may be lost silently."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

ROWS = 120
FORMATS = ("csv", "tsv", "jsonl", "parquet")
_HEAD = ["sentence1", "sentence2", "score"]
# A quoted text may take this many rows of a table with three columns before this is detected.
_UNSEEN = 10

Table = list[list[str]]


@dataclass(frozen=True)
class Attack:
    """A change of a table.

    Attributes:
        kind: A key of `ATTACKS`.
        suffix: One of `FORMATS`.
        row: The row that is changed.
        other: A second row.
        quoted: Whether every seventh text has a comma, and so quotes in a csv.
    """

    kind: str
    suffix: str
    row: int
    other: int
    quoted: bool


def _open_quote(table: Table, row: int, other: int) -> None:
    table[row][0] = f'"{table[row][0]}'


def _two_quotes(table: Table, row: int, other: int) -> None:
    first, last = sorted((row, other))
    table[first][1] = f'"{table[first][1]}'
    table[last][1] = f'{table[last][1]}"'


def _digits(table: Table, row: int, other: int) -> None:
    table[row][2] = "9" * 400


def _doubled(table: Table, row: int, other: int) -> None:
    for each in table:
        each.append(each[0].replace("first", "other"))


def _field_more(table: Table, row: int, other: int) -> None:
    table[row].append("more")


def _field_less(table: Table, row: int, other: int) -> None:
    table[row].pop()


ATTACKS: dict[str, Callable[[Table, int, int], None]] = {
    "open_quote": _open_quote,
    "two_quotes": _two_quotes,
    "digits": _digits,
    "doubled": _doubled,
    "field_more": _field_more,
    "field_less": _field_less,
}

attacks = st.builds(
    Attack,
    st.sampled_from(sorted(ATTACKS)),
    st.sampled_from(FORMATS),
    st.integers(1, ROWS),
    st.integers(1, ROWS),
    st.booleans(),
)


def write_table(path: Path, attack: Attack) -> None:
    """Writes a table of scored pairs that an attack has changed."""
    comma = "," if attack.quoted else ""
    table = [
        [f"first{comma if n % 7 == 0 else ''} {n}.", f"second {n}.", f"{n / 10}"]
        for n in range(1, ROWS + 1)
    ]
    table = [[*_HEAD], *table]
    if attack.suffix == "csv":  # Quotes for commas come first: the attack is on the text.
        table = [[f'"{cell}"' if "," in cell else cell for cell in row] for row in table]
    ATTACKS[attack.kind](table, attack.row, attack.other)
    if attack.suffix in ("csv", "tsv"):
        comma = "," if attack.suffix == "csv" else "\t"
        path.write_text("".join(comma.join(row) + "\n" for row in table), encoding="utf-8")
        return
    head, *rows = table
    if attack.suffix == "jsonl":
        path.write_text("".join(_object(head, row) for row in rows), encoding="utf-8")
        return
    import pyarrow
    from pyarrow import parquet

    columns = [[row[n] if n < len(row) else None for row in rows] for n in range(len(head))]
    parquet.write_table(pyarrow.Table.from_arrays([*map(pyarrow.array, columns)], head), path)


def _object(head: list[str], row: list[str]) -> str:
    """A line of jsonl, whose score is a number, and which may have a key twice."""
    values = [cell if n == 2 else json.dumps(cell) for n, cell in enumerate(row)]
    pairs = (f"{json.dumps(key)}: {value}" for key, value in zip(head, values, strict=False))
    return f"{{{', '.join(pairs)}}}\n"


def check_table(path: Path) -> None:
    """Reads the table: its rows are there or counted as bad ones, or the error names the file.

    Raises:
        AssertionError: Rows are lost, the error is of another kind, or it does not name the file.
    """
    from use_st5.training.rows import read_file

    try:
        source = read_file(path)
        rows = [*source]
    except ValueError as error:
        assert path.name in str(error), f"no file is named: {error!s:.2000}"
        return
    seen = len(rows) + source.report.malformed_rows
    assert seen >= ROWS - _UNSEEN, f"{ROWS - seen} rows are lost:\n{source.report}"
    for row in rows:
        swallowed = max(row[key].count("\n") for key in ("sentence1", "sentence2"))
        assert swallowed <= _UNSEEN, f"a text holds {swallowed} rows"
        assert not row["sentence1"].startswith("other"), "another column of the name is read"


def whole_csv(path: Path, rows: int) -> None:
    """Writes a csv whose texts go on over several lines, as they may."""
    text = "One line, of some.\n\nAnother (here)."
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_HEAD)
        writer.writerows([f"{text} {n}", text, n / 10] for n in range(rows))
