"""Named columns of jsonl, tsv, csv and parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from use_st5.data._reader import MalformedRowError, Reader
from use_st5.data._records import LONGEST_ROW, format_of, records
from use_st5.data.read_report import ReadReport

# A position from 0, a name, or several names, of which the first existing one is used.
Column = int | str | tuple[str, ...]
# Rows that are read to find the names of the columns.
_SAMPLE = 200


class TableReader(Reader):
    r"""Reads chosen columns of jsonl, tsv, csv or parquet rows as dicts of text.

    `TableReader("qa.csv", {"question": "qtext", "answer": "atext"})` gives
    `{"question": …, "answer": …}` per row, white space at both ends removed. Names are compared
    without regard to case. If a name is given, a tsv or csv begins with a header line. A tsv has no
    quoting: quotes are characters and never join lines.

    A row is malformed if it is not valid text, JSON or csv, lacks a column, has more fields than
    the header (a stray tab shifts the columns), has a JSON key twice, has no text in a column that
    must have one, or has a text of more than ten million characters.

    Args:
        path: A file (gzip or plain) or a list of files of the same layout.
        columns: Key of the example → name, alternative names, or position from 0. Positions are
            for tsv and csv.
        optional: Keys of `columns` that may be empty or missing in a row; such an example has "".
        file_format: "jsonl", "tsv", "csv" or "parquet"; by default as the file's suffix says.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows that is an error, in `[0, 1]`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: `columns` is empty or does not fit the format; during the pass: as in `Reader`,
            a needed column is missing or exists twice, or a quote of a csv is not closed within a
            few lines.
    """

    expects = "rows with the named columns"

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        columns: Mapping[str, Column],
        *,
        optional: tuple[str, ...] = (),
        file_format: str | None = None,
        strict: bool = False,
        max_malformed: float = 0.01,
    ) -> None:
        super().__init__(path, strict=strict, max_malformed=max_malformed)
        if not columns:
            raise ValueError("columns: expected at least one key → column, received none.")
        if unknown := set(optional) - set(columns):
            raise ValueError(f"optional: {sorted(unknown)} are not among {list(columns)}.")
        self.columns = dict(columns)
        self.optional = frozenset(optional)
        self.file_format = file_format
        self.header = any(not isinstance(column, int) for column in columns.values())

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        file_format = self.file_format or format_of(path)
        rows = records(path, file_format=file_format)
        if file_format in ("jsonl", "parquet"):
            if any(isinstance(column, int) for column in self.columns.values()):
                raise ValueError(
                    f"{path}: positions are for tsv and csv. Expected the names of JSON keys, "
                    f"received {self._wanted()}."
                )
            return ((line, self._from_object(row)) for line, row in rows)
        return self._table_rows(path, rows)

    def _table_rows(self, path: Path, rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        names: list[str] = []
        places: dict[str, int] | None = None
        for line, row in rows:
            self._note_joined(line, row)
            if places is None and isinstance(row, list):
                names = row if self.header else []
                places = self._places(path, names)
                if self.header:
                    continue
            yield line, self._from_fields(row, places, len(names))

    def _note_joined(self, line: int, row: Any) -> None:
        """Counts a row of csv with fields over several lines."""
        if isinstance(row, list) and (extra := sum(field.count("\n") for field in row)):
            self.report.add_joined(line, extra)

    def _places(self, path: Path, names: list[str]) -> dict[str, int]:
        """Key → position in a row."""
        positions = {name.strip().casefold(): place for place, name in enumerate(names)}
        places: dict[str, int] = {}
        for key, column in self.columns.items():
            if isinstance(column, int):
                places[key] = column
                continue
            matches = [positions[name] for name in _alternatives(column) if name in positions]
            if matches:
                _check_once(names[matches[0]], names, path)
                places[key] = matches[0]
            elif key not in self.optional:
                raise ValueError(
                    f"{path}: the header has no column for {key!r}. Expected "
                    f"{' or '.join(repr(name) for name in _alternatives(column))}, received {names}"
                )
        return places

    def _from_fields(self, row: Any, places: dict[str, int] | None, width: int) -> Any:
        if not isinstance(row, list) or places is None:
            return row
        min_width = 1 + max((p for key, p in places.items() if key not in self.optional), default=0)
        if len(row) < min_width or width and len(row) > width:
            return MalformedRowError(f"{len(row)} fields, expected {width or min_width}")
        return {key: row[place] if place < len(row) else "" for key, place in places.items()}

    def _from_object(self, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        fields = {name.strip().casefold(): value for name, value in row.items()}
        values: dict[str, Any] = {}
        for key, column in self.columns.items():
            names = [name for name in _alternatives(column) if name in fields]
            if names:
                values[key] = fields[names[0]]
                if len(fields) < len(row) and (spellings := _alike(names[0], row))[1:]:
                    return MalformedRowError(
                        f"{' and '.join(map(repr, spellings))} name the same column"
                    )
        return values

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return [{key: self._text(row, key) for key in self.columns}]

    def _text(self, row: dict[str, Any], key: str) -> str:
        """Returns the text of one column; raises MalformedRowError if there is none."""
        value = row.get(key)
        if value is None:
            value = ""
        if not isinstance(value, str):
            raise MalformedRowError(f"{key!r} is of type {type(value).__name__}, expected text")
        value = checked_length(value, key).strip()
        if not value and key not in self.optional:
            raise MalformedRowError(f"no text in {key!r}")
        return value

    def _wanted(self) -> list[Column]:
        return list(self.columns.values())


def column_names(path: Path, *, where: str) -> list[str]:
    """The names of the columns of a table; errors call it `where`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file has no rows with named columns.
    """
    sample, malformed = _sample(path)
    if sample and isinstance(sample[0], list):
        return sample[0]
    if sample:
        return [*dict.fromkeys(key for row in sample for key in row)]
    if malformed.offences:
        raise ValueError(
            f"{where}: expected rows with named columns, found {malformed.malformed_rows:,} "
            f"malformed ones only. The first: {malformed.offences[0]}. Does the file have the "
            "format of its suffix?"
        )
    raise ValueError(f"{where}: expected rows with named columns, found an empty file.")


def _sample(path: Path) -> tuple[list[Any], ReadReport]:
    """The first good rows of a table, and a report of the malformed rows among them."""
    rows: list[Any] = []
    report = ReadReport()
    for number, row in records(path, file_format=format_of(path)):
        if isinstance(row, MalformedRowError):
            report.add_malformed(path, number, str(row))
        elif isinstance(row, list | dict):
            rows.append(row)
        if len(rows) == _SAMPLE:
            break
    return rows, report


def _alternatives(column: Column) -> tuple[str, ...]:
    names = column if isinstance(column, tuple) else (str(column),)
    return tuple(name.strip().casefold() for name in names)


def _check_once(name: str, names: Iterable[str], path: Path) -> None:
    """Refuses a table with several columns of a name that is read, without regard to case."""
    spellings = _alike(name.strip().casefold(), names)
    if len(spellings) > 1:
        raise ValueError(
            f"{path}: expected one column {name!r}, found {len(spellings)} of that name: "
            f"{', '.join(map(repr, spellings))}. Rename or leave out the others."
        )


def _alike(folded: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.strip().casefold() == folded]


def checked_length(text: str, key: str) -> str:
    """Returns the text; raises MalformedRowError if it is too long to read in reasonable time."""
    if len(text) > LONGEST_ROW:
        raise MalformedRowError(
            f"{key!r} has {len(text):,} characters, expected at most {LONGEST_ROW:,}"
        )
    return text
