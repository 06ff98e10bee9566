"""Records of jsonl, tsv and csv files: a row is a list of fields or a JSON object."""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from use_st5.data._reader import MalformedRowError, SkippedRowError
from use_st5.data.quoted_rows import quoted_rows
from use_st5.io.lines import LongLine, check_file, read_lines

Row = list[str] | dict[str, Any] | MalformedRowError | SkippedRowError

_FORMATS = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
    ".tsv": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".parquet": "parquet",
}
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
# The most bytes of a line, and characters of a text: enough for a book, and read in seconds.
LONGEST_ROW = 10_000_000
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def format_of(path: Path) -> str:
    """The format by the file's name, such as "jsonl"; a `.gz` at the end is ignored."""
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix in _SHEETS:
        raise ValueError(
            f"{path}: expected a text file or parquet, received a spreadsheet. Save its sheet as "
            ".csv in UTF-8."
        )
    if suffix not in _FORMATS:
        raise ValueError(
            f"{path}: expected a name that ends in one of {', '.join(_FORMATS)} (.gz may follow), "
            f"received {suffix!r}. Name the format: 'jsonl', 'tsv', 'csv' or 'parquet'."
        )
    return _FORMATS[suffix]


def records(path: Path, *, file_format: str) -> Iterator[tuple[int, Row]]:
    """Yields line numbers from 1 and rows; an exception instead of a row that cannot be read.

    Args:
        path: The file.
        file_format: "jsonl", "tsv" (no quoting: a quote is a character) or "csv" (RFC 4180, a
            quoted field may span lines; the number is that of the record's first line) or "parquet"
            (a record is an object, its number that of the row).
    """
    if file_format == "jsonl":
        return _line_records(path, json_object)
    if file_format == "tsv":
        return _line_records(path, tab_separated)
    if file_format == "csv":
        lines = read_lines(path, longest=LONGEST_ROW, skip_long=True)
        return csv_records((line for _, line in lines), where=str(path))
    if file_format == "parquet":
        return _parquet(path)
    raise ValueError(
        f"Expected the format 'jsonl', 'tsv', 'csv' or 'parquet', received {file_format!r}."
    )


def _parquet(path: Path) -> Iterator[tuple[int, Row]]:
    rows = (row for batch in parquet_batches(path) for row in batch.to_pylist())
    yield from enumerate(rows, start=1)


def parquet_batches(
    path: Path, choose: Callable[[list[str]], list[str]] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a parquet file, some ten thousand at a time.

    Args:
        path: The file.
        choose: Names of the columns → those to read; None: all.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, or two columns have one name.
    """
    check_file(path)
    with _named_damage(path), parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if len({*names}) == len(names):
            yield from file.iter_batches(columns=choose(names) if choose else None)
            return
    raise ValueError(
        f"{path}: expected columns of different names, found {_repeated(names)!r} twice. Rename or "
        "leave out one of the two."
    )


@contextlib.contextmanager
def _named_damage(path: Path) -> Iterator[None]:
    """Turns Arrow's many errors for a damaged file into a ValueError with the file's name."""
    try:
        yield
    except Exception as error:
        if getattr(error, "errno", None) is not None:  # Arrow's OSError of damage has none.
            raise
        message = " ".join(str(error).split())
        raise ValueError(f"{path}: expected a parquet file ({message}).") from error


def _repeated(names: Iterable[str]) -> str:
    """Returns the first of the names that occurs twice."""
    return next(name for name, count in Counter(names).items() if count > 1)


def _decode(line: bytes) -> str | MalformedRowError:
    if isinstance(line, LongLine):
        return MalformedRowError(f"a line of more than {LONGEST_ROW:,} bytes")
    try:
        return line.decode()
    except UnicodeDecodeError:
        return MalformedRowError("invalid utf-8")


def _line_records(path: Path, parse: Callable[[str], Row]) -> Iterator[tuple[int, Row]]:
    """Yields the records of a format in which every line is a record."""
    for number, line in read_lines(path, longest=LONGEST_ROW, skip_long=True):
        yield number, line_record(line, parse)


def line_record(line: bytes, parse: Callable[[str], Row]) -> Row:
    """Returns a line as a record; `parse` turns its text into one."""
    text = _decode(line)
    if isinstance(text, MalformedRowError):
        return text
    return parse(text) if text.strip() else SkippedRowError("blank")


def json_object(text: str) -> dict[str, Any] | MalformedRowError:
    """Returns the object in a line of jsonl, or an error with the reason why there is none."""
    try:
        value = _JSON.decode(text)
    except _RepeatedKeyError as reason:
        return MalformedRowError(str(reason))
    except (ValueError, RecursionError):
        return MalformedRowError("invalid JSON")
    if not isinstance(value, dict):
        return MalformedRowError(f"JSON {type(value).__name__}, not an object")
    if _ESCAPED_SURROGATE.search(text) and not _is_text(value):
        return MalformedRowError("half of a surrogate pair, which is no character")
    return value


class _RepeatedKeyError(ValueError):
    """A JSON object has a key twice; the message is the reason."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        name = _repeated(key for key, _ in pairs)
        raise _RepeatedKeyError(f"the key {name!r:.80} occurs twice")
    return value


_JSON = json.JSONDecoder(object_pairs_hook=_object)


def _is_text(value: Any) -> bool:
    """Whether all strings in a JSON value can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def tab_separated(text: str) -> list[str]:
    return text.split("\t")


class _DecodedLines:
    """The lines of a csv file; remembers the error of a line since the last record."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.wrong: MalformedRowError | None = None
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            text = _decode(line)
            if isinstance(text, MalformedRowError):
                self.wrong = text
                text = line.decode(errors="replace")
            yield text + "\n"


def csv_records(
    lines: Iterable[bytes],
    *,
    where: str,
    first: int = 1,
    width: int = 0,
    enough: int | None = None,
) -> Iterator[tuple[int, Row]]:
    """Yields the records of csv lines without line feeds; other arguments: see `quoted_rows`."""
    decoded = _DecodedLines(lines)
    for number, fields in quoted_rows(
        decoded, where=where, first=first, width=width, enough=enough
    ):
        error, decoded.wrong = decoded.wrong, None
        if error is not None:
            yield number, error
        elif isinstance(fields, csv.Error):
            yield number, MalformedRowError(f"invalid csv ({fields})")
        elif not any(field.strip() for field in fields):
            yield number, SkippedRowError("blank")
        else:
            yield number, fields
