"""Records of jsonl, tsv, csv and parquet files: a row is a list of fields or a JSON object."""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from use_st5.data.reader import MalformedRowError, SkippedRowError
from use_st5.io.lines import LongLine, check_file, lines_of, read_lines

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
# A row of csv over more lines than this is taken for a quote that nobody closed.
_MOST_LINES = 1000
# So is a row if this share of its lines has as many commas as a row, and at least so many commas.
_LIKE_ROWS, _COMMAS_OF_ROWS = 0.9, 20
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def format_of(path: Path) -> str:
    """The format by the file's name, such as "jsonl"; a `.gz` at the end is ignored."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
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


def records(
    path: Path, *, file_format: str | None = None, file: BinaryIO | None = None
) -> Iterator[tuple[int, Row]]:
    """Yields line numbers from 1 and rows; an exception instead of a row that cannot be read.

    Args:
        path: The file.
        file_format: "jsonl", "tsv" (no quoting: a quote is a character), "csv" (RFC 4180, a quoted
            field may span lines; the number is that of the record's first line) or "parquet" (a
            record is an object, its number that of the row); None: as the file's name says.
        file: The open file, if it is not on this machine's disk; `path` is then a name.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The format is unknown, the file is damaged or UTF-16, or a quote of a csv
            swallows the rows that follow.
    """
    file_format = file_format or format_of(path)
    if file_format == "parquet":
        batches = parquet_batches(path, file=file)
        yield from enumerate((row for batch in batches for row in batch.to_pylist()), start=1)
        return
    if file_format not in _FORMATS.values():
        raise ValueError(
            f"Expected the format 'jsonl', 'tsv', 'csv' or 'parquet', received {file_format!r}."
        )
    if file is None:
        lines = read_lines(path, longest=LONGEST_ROW, skip_long=True)
    else:
        lines = lines_of(file, where=str(path), longest=LONGEST_ROW, skip_long=True)
    if file_format == "csv":
        yield from _csv_records(lines, path)
        return
    parse: Callable[[str], Row] = json_object if file_format == "jsonl" else _fields
    for number, line in lines:
        try:
            text = decoded(line)
            yield number, parse(text) if text.strip() else SkippedRowError("blank")
        except MalformedRowError as reason:
            yield number, reason


def parquet_batches(
    path: Path,
    choose: Callable[[list[str]], Iterable[str]] | None = None,
    *,
    file: BinaryIO | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a parquet file, some ten thousand at a time.

    Args:
        path: The file.
        choose: Names of the columns → those to read; None: all.
        file: As for `records`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, or two columns have one name.
    """
    if file is None:
        check_file(path)
    with _named_damage(path):
        opened = parquet.ParquetFile(file or path)
    with opened:
        names = opened.schema_arrow.names
        if repeated := _repeated(names):
            raise ValueError(
                f"{path}: expected columns of different names, found {repeated!r} twice. Rename or "
                "leave out one of the two."
            )
        batches = opened.iter_batches(columns=[*choose(names)] if choose else None)
        while True:
            with _named_damage(path):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


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


def decoded(line: bytes) -> str:
    """A line as text; raises MalformedRowError if it is no UTF-8, or too long."""
    if isinstance(line, LongLine):
        raise MalformedRowError(f"a line of more than {LONGEST_ROW:,} bytes")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise MalformedRowError("invalid utf-8") from None


def _fields(text: str) -> list[str]:
    return text.split("\t")


def json_object(text: str) -> dict[str, Any]:
    """The object in a line of jsonl; raises MalformedRowError if there is none."""
    try:
        value = _JSON.decode(text)
    except MalformedRowError:
        raise
    except (ValueError, RecursionError):
        raise MalformedRowError("invalid JSON") from None
    if not isinstance(value, dict):
        raise MalformedRowError(f"JSON {type(value).__name__}, not an object")
    if _ESCAPED_SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise MalformedRowError("half of a surrogate pair, which is no character") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise MalformedRowError(f"the key {_repeated(key for key, _ in pairs)!r:.80} occurs twice")
    return value


_JSON = json.JSONDecoder(object_pairs_hook=_object)


def _repeated(names: Iterable[str]) -> str | None:
    """Returns the first of the names that occurs twice."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _csv_records(lines: Iterable[tuple[int, bytes]], path: Path) -> Iterator[tuple[int, Row]]:
    """Yields rows as RFC 4180 defines them; for a broken row, an error for each of its lines."""
    first, number, width, like_rows = 1, 0, 0, 0
    wrong: list[MalformedRowError] = []

    def checked() -> Iterator[str]:
        nonlocal number, like_rows
        for number, line in lines:
            try:
                text = decoded(line)
            except MalformedRowError as reason:
                wrong[:], text = [reason], line.decode(errors="replace")
            if number > first:  # The line continues a row.
                like_rows += "," in text and text.count(",") == width - 1
                _check_open(path, first, number, like_rows, width)
            yield text + "\n"

    reader = csv.reader(checked(), strict=True)
    while True:
        first, like_rows = number + 1, 0
        wrong.clear()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = f"invalid csv ({error})"
            if number > first:
                reason = f"invalid csv ({error}; a row in lines {first} to {number})"
            yield from ((line, MalformedRowError(reason)) for line in range(first, number + 1))
            continue
        width = width or len(fields)
        if wrong:
            yield first, wrong[0]
        else:
            is_blank = not any(field.strip() for field in fields)
            yield first, SkippedRowError("blank") if is_blank else fields


def _check_open(path: Path, first: int, number: int, like_rows: int, width: int) -> None:
    """Refuses a row of csv that goes on over lines which are rows themselves, or over too many."""
    if number - first > _MOST_LINES:
        reason = f"it is open for more than {_MOST_LINES:,} lines"
    elif like_rows >= max(_LIKE_ROWS * (number - first), _COMMAS_OF_ROWS / max(1, width - 1)):
        reason = "the lines after it look like rows"
    else:
        return
    raise ValueError(
        f"{path}:{first}: expected a closing quote for the field that opens in this line; {reason}"
        '. Add the quote, and write a quote inside a quoted text twice (""). Longer texts can be '
        "read from .jsonl and .parquet files."
    )
