"""Tables (jsonl, tsv, csv, parquet): row by row, or as one Arrow table.

`TableReader` goes through the rows one by one and says what is wrong with each bad one. `Table`
lets Arrow parse the file in blocks; if Arrow refuses a block, or a row in it might be bad, it reads
the file again as `TableReader` does. So there is one reader that knows bad rows.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import logging
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
from pyarrow import parquet

from use_st5.io.files import file_sha256
from use_st5.io.lines import (
    GZIP_DAMAGE,
    LongLine,
    as_paths,
    batched,
    check_file,
    read_lines,
    unpacked,
)

_log = logging.getLogger(__name__)
# A position from 0, a name, or several names, of which the first existing one is used.
Column = int | str | tuple[str, ...]
TEXT = pa.large_string()
# If the share of bad rows of a user's file is larger, it does not have the expected content.
MAX_MALFORMED = 0.1
# The most bytes of a line, and characters of a text: enough for a book, and read in seconds.
LONGEST_ROW = 10_000_000
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
# A file of another format is recognized after this number of rows, not after gigabytes.
_HOPELESS = 100
# Enough to see what is wrong with a file; a report stays small however large the file is.
_MAX_OFFENCES, _MAX_REASONS = 10, 50
_JOINED = "rows over several lines, which a quote joins"
# A row of csv over more lines than this is taken for a quote that nobody closed.
_MOST_LINES = 1000
# So is a row if this share of its lines has as many commas as a row, and at least so many commas.
_LIKE_ROWS, _COMMAS_OF_ROWS = 0.9, 20
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# Rows that are read for the names of the columns; examples that become a table at once; bytes that
# Arrow parses at once.
_SAMPLE, _AT_ONCE, _BLOCK = 200, 10_000, 2**23
# What a column of 0 and 1 may hold.
_SWITCHES = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
# Whole numbers and others, as they are written: "007" is none, nor is "1.50.1".
_WHOLE, _DECIMAL = r"^(0|-?[1-9][0-9]*)$", r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
# All characters that `str.strip` removes.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))


class MalformedRowError(ValueError):
    """A row breaks its format; the message is the reason, without the place."""


class SkippedRowError(Exception):
    """A row that its format excludes; the message has the reason."""


Row = list[str] | dict[str, Any] | MalformedRowError | SkippedRowError


@dataclass
class ReadReport:
    """Counts of one pass over the files of a reader.

    A row is *skipped* when the format itself says so (a label `-`, a blank line) and *malformed*
    when it breaks the format. Both are counted by reason.

    Attributes:
        rows: Rows that were read without an error.
        examples: Examples from these rows (one dialogue gives many).
        skipped: Reason → number of rows.
        malformed: Reason → number of rows.
        notes: Remark on rows that were read nevertheless, such as a decoding fallback → number.
        offences: The first malformed rows, as "file:line: reason".
    """

    rows: int = 0
    examples: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    offences: list[str] = field(default_factory=list)

    @property
    def malformed_rows(self) -> int:
        """Number of malformed rows."""
        return self.malformed.total()

    @property
    def malformed_share(self) -> float:
        """Malformed rows as a share of all that were neither skipped nor blank, in `[0, 1]`."""
        return self.malformed_rows / max(1, self.rows + self.malformed_rows)

    @property
    def seen(self) -> int:
        """Number of rows that are not blank, whether they were read, skipped or malformed."""
        return self.rows + self.malformed_rows + self.skipped.total() - self.skipped["blank"]

    def add_malformed(self, path: Path, line: int, reason: str) -> None:
        """Counts a malformed row and keeps its place if it is among the first."""
        is_listed = reason in self.malformed or len(self.malformed) < _MAX_REASONS
        self.malformed[reason if is_listed else "other reasons"] += 1
        if len(self.offences) < _MAX_OFFENCES:
            self.offences.append(f"{path}:{line}: {reason}")

    def add_joined(self, first: int, last: int) -> None:
        """Notes that a quote joins lines to one row, with the lines of the first such row."""
        note = next((note for note in self.notes if note.startswith(_JOINED)), None)
        self.notes[note or f"{_JOINED} (first: lines {first:,} to {last:,})"] += 1

    def __str__(self) -> str:
        """One line of totals, then one line per reason and per kept offence."""
        lines = [
            f"{self.rows} rows read, {self.examples} examples, "
            f"{self.skipped.total()} skipped, {self.malformed_rows} malformed"
        ]
        for name in ("skipped", "malformed", "notes"):
            counts: Counter[str] = getattr(self, name)
            lines += [f"  {name}: {reason}: {count}" for reason, count in counts.most_common()]
        lines += [f"  {offence}" for offence in self.offences]
        return "\n".join(lines)


class Reader(ABC):
    """An iterable over the examples of one file or several, read as a stream.

    Every pass starts at the beginning and fills a new `report`. Malformed rows are left out and
    counted. The pass ends in a ValueError if their share is above `max_malformed` (checked at the
    end, and after 100 rows if none of them was good), at the first one if `strict`, and if a file
    has no rows or there is no example at all.

    Attributes:
        report: The `ReadReport` of the latest pass.
    """

    # The content that a file should have, for error messages.
    expects = "rows"
    # Whether a pass that left rows out says so in the log: not needed if the caller shows the
    # report.
    warns = True

    def __init__(
        self, paths: list[Path], *, strict: bool = False, max_malformed: float = 0.01
    ) -> None:
        self.paths = paths
        self.strict = strict
        self.max_malformed = max_malformed
        self.report = ReadReport()

    @abstractmethod
    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        """Yields line numbers and raw rows; an exception that is yielded as a row is raised."""

    @abstractmethod
    def _examples(self, row: Any) -> list[dict[str, Any]]:
        """Turns a row into examples; raises MalformedRowError or SkippedRowError."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Starts a pass over all files."""
        report = self.report = ReadReport()
        for path in self.paths:
            before = report.seen
            for line, row in self._rows(path):
                try:
                    if isinstance(row, Exception):
                        raise row
                    examples = self._examples(row)
                except SkippedRowError as reason:
                    report.skipped[str(reason)] += 1
                except MalformedRowError as reason:
                    report.add_malformed(path, line, str(reason))
                    if self.strict:
                        text = f"{path}:{line}: {reason}. Expected {self.expects}."
                        raise ValueError(text) from reason
                    if not report.rows and report.malformed_rows >= _HOPELESS:
                        self._check_share()
                else:
                    report.rows += 1
                    report.examples += len(examples)
                    yield from examples
            if report.seen == before:
                raise ValueError(f"{path}: the file has no rows. Expected {self.expects}.")
        self._finish()

    def _finish(self) -> None:
        """Refuses a pass with too many malformed rows or without any good one."""
        self._check_share()
        if self.report.malformed_rows and self.warns:
            _log.warning("%s: left out malformed rows\n%s", self.paths[0], self.report)
        if not self.report.examples:
            text = f"no usable row. Expected {self.expects}. Received:\n{self.report}"
            raise ValueError(f"{self.paths[0]}: {text}")

    def _check_share(self) -> None:
        if self.report.malformed_share > self.max_malformed:
            raise ValueError(
                f"{self.paths[0]}: expected {self.expects}, and at most {self.max_malformed:.2%} "
                f"malformed rows, found {self.report.malformed_share:.2%}. Correct the rows, or, "
                f"in Python, give max_malformed. The report:\n{self.report}"
            )


def format_of(path: Path) -> str:
    """The format by the file's name, such as "jsonl"; a `.gz` at the end is ignored."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in _SHEETS:
        raise ValueError(f"{path}: received a spreadsheet. Save its sheet as .csv in UTF-8.")
    if suffix not in _FORMATS:
        names = ", ".join(_FORMATS)
        raise ValueError(f"{path}: expected a name that ends in one of {names} (.gz may follow).")
    return _FORMATS[suffix]


def records(path: Path, *, file_format: str | None = None) -> Iterator[tuple[int, Row]]:
    """Yields line numbers from 1 and rows; an exception instead of a row that cannot be read.

    Args:
        path: The file.
        file_format: "jsonl", "tsv" (no quoting: a quote is a character), "csv" (RFC 4180, a quoted
            field may span lines; the number is that of the record's first line) or "parquet" (a
            record is an object, its number that of the row); None: as the file's name says.

    A damaged file, UTF-16, and a quote of a csv that swallows rows are a ValueError.
    """
    file_format = file_format or format_of(path)
    if file_format == "parquet":
        rows = (row for batch in parquet_batches(path) for row in batch.to_pylist())
        yield from enumerate(rows, start=1)
        return
    lines = read_lines(path, longest=LONGEST_ROW, skip_long=True)
    if file_format == "csv":
        yield from _csv_records(lines, path)
        return
    parsers: dict[str, Callable[[str], Row]] = {"jsonl": json_object, "tsv": _fields}
    parse = parsers[file_format]
    for number, line in lines:
        try:
            text = decode(line)
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

    `choose` maps the names of the columns to those to read; None: all. `file` is the open file, if
    it is not on this machine's disk; `path` is then a name. A damaged file, and two columns of one
    name, are a ValueError.
    """
    if file is None:
        check_file(path)
    with _named_damage(path):
        opened = parquet.ParquetFile(file or path)
    with opened:
        names = opened.schema_arrow.names
        if repeated := _repeated(names):
            raise ValueError(f"{path}: found two columns {repeated!r}. Rename or leave out one.")
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


def decode(line: bytes) -> str:
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
    if text.lstrip().startswith("["):
        raise MalformedRowError("a JSON array, expected an object in each line")
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
    csv.field_size_limit(2**31 - 1)  # The lines have a limit.
    first, number, width, like_rows = 1, 0, 0, 0
    wrong: list[MalformedRowError] = []

    def checked() -> Iterator[str]:
        nonlocal number, like_rows
        for number, line in lines:
            try:
                text = decode(line)
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
        '. Add the quote, and write a quote inside a quoted text twice ("").'
    )


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
        super().__init__(as_paths(path), strict=strict, max_malformed=max_malformed)
        self.columns = dict(columns)
        self.optional = frozenset(optional)
        self.file_format = file_format

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        file_format = self.file_format or format_of(path)
        if file_format == "parquet":
            rows = (row for batch in self._parquet(path) for row in batch.to_pylist())
            return enumerate(rows, start=1)
        numbered = records(path, file_format=file_format)
        if file_format == "jsonl":
            return ((line, self._from_object(row)) for line, row in numbered)
        return self._table_rows(path, numbered)

    def _parquet(self, path: Path) -> Iterator[pa.Table]:
        """Yields tables of the columns, named by their keys."""
        names: dict[str, str] = {}

        def choose(in_file: list[str]) -> Iterable[str]:
            names.update({key: in_file[at] for key, at in self._places(path, in_file).items()})
            return dict.fromkeys(names.values())

        for batch in parquet_batches(path, choose):
            yield pa.table([batch.column(name) for name in names.values()], [*names])

    def _table_rows(self, path: Path, rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        names: list[str] = []
        places: dict[str, int] = {}
        for line, row in rows:
            if not isinstance(row, list):
                yield line, row
                continue
            if extra := sum(field.count("\n") for field in row):
                self.report.add_joined(line, line + extra)
            if not places:
                has_header = any(not isinstance(column, int) for column in self.columns.values())
                names = row if has_header else []
                places = self._places(path, names)
                if has_header:
                    continue
            needed = [place for key, place in places.items() if key not in self.optional]
            least = 1 + max(needed, default=0)
            if len(row) < least or names and len(row) > len(names):
                reason = f"{len(row)} fields, expected {len(names) or least}"
                yield line, MalformedRowError(reason)
            else:
                yield line, {k: row[at] if at < len(row) else "" for k, at in places.items()}

    def _places(self, path: Path, names: list[str]) -> dict[str, int]:
        """Key → position in a row."""
        positions = {_folded(name): place for place, name in enumerate(names)}
        places: dict[str, int] = {}
        for key, column in self.columns.items():
            if isinstance(column, int):
                places[key] = column
            elif (name := _present(column, positions)) is not None:
                if (alike := [other for other in names if _folded(other) == name])[1:]:
                    spellings = ", ".join(map(repr, alike))
                    raise ValueError(f"{path}: expected one column {alike[0]!r}, found {spellings}")
                places[key] = positions[name]
            elif key not in self.optional:
                raise ValueError(
                    f"{path}: the header has no column for {key!r}. Expected {column!r}, received "
                    f"{names}"
                )
        return places

    def _from_object(self, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        fields = {_folded(name): value for name, value in row.items()}
        values: dict[str, Any] = {}
        for key, column in self.columns.items():
            if (name := _present(column, fields)) is not None:
                alike = [other for other in row if _folded(other) == name]
                if len(alike) > 1:
                    return MalformedRowError(f"{alike[0]!r} and {alike[1]!r} name the same column")
                values[key] = fields[name]
        return values

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        optional = self.optional
        return [{k: clean_text(row.get(k), k, optional=k in optional) for k in self.columns}]


class RowReader(TableReader):
    """Reads the rows of a file with all their columns: texts from one, the others as they are."""

    def __init__(self, path: Path, text: str) -> None:
        names = column_names(path, where=str(path))
        self.text = next(name for name in names if _folded(name) == _folded(text))
        counts = Counter(map(_folded, names))  # A column without a name of its own is left out.
        names = [
            self.text,
            *(name for name in names if counts[_folded(name)] == 1 and name.strip()),
        ]
        super().__init__(path, {name: name for name in names}, optional=(*names,), strict=True)

    def _from_object(self, row: Any) -> Any:
        values = super()._from_object(row)
        return {**row, **values} if isinstance(values, dict) else values

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**row, self.text: clean_text(row.get(self.text), self.text, optional=True)}]

    def read(self) -> tuple[list[str], pa.Table]:
        """Reads the texts, and the other columns.

        Numbers of tsv and csv are read as numbers, if all of a column are, but ids are texts. An
        empty cell is a missing value. Values of several types become JSON.
        """
        texts: list[str] = []
        columns: dict[str, list[Any]] = {}
        for row in self:
            texts.append(row.pop(self.text))
            for name, value in row.items():
                values = columns.setdefault(name, [])
                values += [None] * (len(texts) - 1 - len(values))
                values.append(value)
        is_plain = format_of(self.paths[0]) in ("csv", "tsv")
        arrays = {
            name: _typed(values + [None] * (len(texts) - len(values)), is_plain, name)
            for name, values in columns.items()
        }
        return texts, pa.table(arrays)


def _typed(values: list[Any], is_plain: bool, name: str) -> pa.Array:
    if is_plain:
        array = pa.array([value or None for value in values], TEXT)
        is_id = _folded(name) in ("id", "_id")
        for pattern, number in ((_WHOLE, pa.int64()), (_DECIMAL, pa.float64())):
            if not is_id and pc.all(pc.match_substring_regex(array, pattern)).as_py():
                with contextlib.suppress(pa.ArrowInvalid):  # More digits than a number may have.
                    return array.cast(number)
        return array
    with contextlib.suppress(pa.ArrowException, ValueError, OverflowError):
        array = pa.array(values)
        if not (pa.types.is_nested(array.type) or pa.types.is_null(array.type)):
            return array
    return pa.array(
        [
            value if value is None or isinstance(value, str) else json.dumps(value, default=str)
            for value in values
        ],
        TEXT,
    )


class Table(TableReader):
    """The rows of one file, or of the memory, as an Arrow table of texts, labels and scores.

    `columns` is key of a row → name of the column. The values of the key `label` become texts
    (`label_text`); those of `score` are finite numbers. `flags` are keys of columns of 0 and 1,
    whose names are the labels of a row. `content` is the sha256 of the file once it is read.
    """

    warns = False

    def __init__(
        self,
        rows: Path | pa.Table,
        columns: Mapping[str, str],
        *,
        name: str = "",
        label: str | None = None,
        score: str | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        paths = [rows] if isinstance(rows, Path) else [Path(name)]
        Reader.__init__(self, paths, max_malformed=MAX_MALFORMED)
        self.columns, self.optional, self.file_format = dict(columns), frozenset(), None
        self.memory = None if isinstance(rows, Path) else rows.select([*columns.values()])
        self.expects = f"rows with {', '.join(columns)}"
        self.label, self.score, self.flags, self.content = label, score, flags, ""
        if self.memory is not None:
            parquet.write_table(rows, sink := pa.BufferOutputStream())
            self.content = hashlib.sha256(sink.getvalue()).hexdigest()
            self.memory = self.memory.rename_columns([*columns])

    def read(self) -> pa.Table:
        """Reads the file: scores become float64, all other columns large_string."""
        (path,) = self.paths
        try:
            if self.flags:
                raise ValueError("columns of 0 and 1")
            parts = self._parsed(path) if self.memory is None else iter([self.memory])
            table = pa.concat_tables(map(self._cleaned, parts))
            if not table.num_rows:
                raise ValueError("no rows")
        except (ValueError, OSError, KeyError, csv.Error, pa.ArrowException, *GZIP_DAMAGE):
            # This says what is wrong, row by row.
            table = table_of(self, row_keys(self.columns, self.label, self.flags), self.score)
        else:
            self.report = ReadReport(rows=table.num_rows, examples=table.num_rows)
        self.content = self.content or file_sha256(path)
        return table

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        if self.memory is None:
            return super()._rows(path)
        return enumerate(self.memory.to_pylist(), start=1)

    def _examples(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [clean_row(row, self.columns, self.label, self.score, self.flags)]

    def _parsed(self, path: Path) -> Iterator[pa.Table]:
        """Yields the rows as Arrow reads them; a ValueError if a row does not have a line."""
        file_format = format_of(path)
        if file_format == "parquet":
            yield from self._parquet(path)
            return
        places: dict[str, int] = {}
        columns: Mapping[str, Any] = self.columns
        for data in _blocks(path):
            if file_format == "jsonl":
                table = arrow_json.read_json(pa.BufferReader(data))
                folded = Counter(map(_folded, table.column_names))
                if any(folded[_folded(name)] > 1 for name in columns.values()):
                    raise ValueError("keys that differ in case")
                table = pa.table([table[name] for name in columns.values()], [*columns])
            else:
                if not places:
                    line, _, data = data.partition(b"\n")
                    text = line.decode().removesuffix("\r")
                    is_csv = file_format == "csv"
                    names = next(csv.reader([text], strict=True)) if is_csv else _fields(text)
                    places = self._places(path, names)
                table = _parsed_fields(data, places, len(names), file_format)
            if table.num_rows != data.count(b"\n"):
                raise ValueError("rows over several lines, or blank ones")
            yield table

    def _cleaned(self, table: pa.Table) -> pa.Table:
        """The rows of a table without white space around texts; a ValueError if one may be bad."""
        columns = []
        for key in self.columns:
            values = table[key]
            type_ = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
            is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
            if is_text:
                sizes = pc.binary_length(values.cast(TEXT))
                values = pc.utf8_trim(values.cast(TEXT), characters=_SPACES)
            if key == self.score:
                values = values.cast(pa.float64(), safe=False)
                good = pc.is_finite(values)
            elif is_text:
                good = pc.and_(pc.greater(pc.binary_length(values), 0), pc.less(sizes, LONGEST_ROW))
            elif key == self.label and pa.types.is_integer(type_):
                values = values.cast(TEXT)
                good = pc.is_valid(values)
            else:
                raise ValueError("no texts")
            if not pc.all(good, skip_nulls=False, min_count=0).as_py():
                raise ValueError("a row that may be bad")
            columns.append(values)
        return pa.table(columns, [*self.columns])


def _blocks(path: Path) -> Iterator[bytes]:
    """Yields a file in parts that end with a line; a ValueError if its lines are unusual."""
    with path.open("rb") as file:
        content = unpacked(file, where=str(path))
        start = True
        while data := content.read(_BLOCK):
            tail = content.readline(LONGEST_ROW + 1)
            if len(tail) > LONGEST_ROW:
                raise ValueError("a long line")
            data += tail
            data = data if data.endswith(b"\n") else data + b"\n"
            data.decode()
            if data.count(b"\r") != data.count(b"\r\n"):
                raise ValueError("carriage returns")
            yield data.removeprefix(b"\xef\xbb\xbf") if start else data
            start = False


def _parsed_fields(
    data: bytes, places: Mapping[str, int], width: int, file_format: str
) -> pa.Table:
    """Rows of tsv or csv as Arrow reads them; a ValueError if Python may read them differently."""
    data = b"\n" + data  # Arrow skips a blank line, but also a byte order mark.
    quoted = file_format == "csv" and b'"' in data
    if quoted:  # Every quote must open or close a field, or be one of two inside a field.
        codes = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(codes == ord('"'))
        opens = np.isin(codes[quotes[0::2] - 1], np.frombuffer(b',\n"', np.uint8))
        closes = np.isin(codes[quotes[1::2] + 1], np.frombuffer(b',\n\r"', np.uint8))
        if len(quotes) % 2 or not (opens.all() and closes.all()):
            raise ValueError("quotes")
    names = [str(place) for place in range(width)]
    chosen = [names[place] for place in places.values()]
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=len(data)),
        parse_options=arrow_csv.ParseOptions(
            delimiter="," if file_format == "csv" else "\t",
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=chosen, column_types=dict.fromkeys(chosen, TEXT), check_utf8=False
        ),
    )
    return table.rename_columns([*places])


def column_names(path: Path, *, where: str) -> list[str]:
    """The names of the columns of a table; errors, such as that it has no rows, call it `where`."""
    bad: list[str] = []
    sample: list[Any] = []
    for number, row in records(path):
        if isinstance(row, MalformedRowError):
            bad.append(f"{path}:{number}: {row}")
        elif isinstance(row, list):
            return row
        elif isinstance(row, dict):
            sample.append(row)
        if len(sample) == _SAMPLE:
            break
    if sample:
        return [*dict.fromkeys(key for row in sample for key in row)]
    found = "an empty file"
    if bad:
        found = f"{len(bad):,} malformed ones only. The first: {bad[0]}"
    raise ValueError(f"{where}: expected rows with named columns, found {found}.")


def table_of(
    examples: Iterable[Mapping[str, Any]], columns: Iterable[str], score: str | None = None
) -> pa.Table:
    """Examples as a table of these columns."""
    schema = pa.schema([(key, pa.float64() if key == score else TEXT) for key in columns])
    parts = [pa.Table.from_pylist(part, schema) for part in batched(examples, _AT_ONCE)]
    return pa.concat_tables(parts or [schema.empty_table()])


def row_keys(keys: Iterable[str], label: str | None, flags: Sequence[str]) -> list[str]:
    """The keys of a clean row: the label is in the place of the columns of 0 and 1."""
    return [key for key in keys if key not in flags] + ([label] if label and flags else [])


def clean_row(
    row: Mapping[str, Any],
    keys: Iterable[str],
    label: str | None,
    score: str | None,
    flags: Sequence[str] = (),
) -> dict[str, Any]:
    """A row's values: texts and labels without white space around them, scores as numbers.

    `flags` are the keys of columns of 0 and 1: those with a 1 are the labels of the row.
    """
    if label and flags:
        row = {**row, label: [flag for flag in flags if _is_set(row.get(flag), flag)]}
    values: dict[str, Any] = {}
    for key in row_keys(keys, label, flags):
        value = row.get(key)
        if key == score:
            values[key] = _number(value, key)
        else:
            values[key] = clean_text(label_text(value) if key == label else value, key)
    return values


def label_text(value: Any) -> Any:
    """A label as text: numbers and truth values as Python writes them, a list as sorted JSON."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, list | tuple):
        labels = {clean_text(label_text(each), "label") for each in value}
        return json.dumps(sorted(labels), ensure_ascii=False)
    is_number = isinstance(value, int | float) and not math.isnan(value)
    return str(value) if is_number else value


def _is_set(value: Any, key: str) -> bool:
    switch = _SWITCHES.get(str(value).strip().casefold())
    if switch is None:
        raise MalformedRowError(f"{key!r} is {value!r:.40}, expected 0 or 1")
    return switch


def clean_text(value: Any, key: str, *, optional: bool = False) -> str:
    """A text without white space around it; MalformedRowError if it is none, or too long."""
    value = "" if value is None else value
    if not isinstance(value, str):
        raise MalformedRowError(f"{key!r} is of type {type(value).__name__}, expected text")
    if len(value) > LONGEST_ROW:
        raise MalformedRowError(
            f"{key!r} has {len(value):,} characters, expected at most {LONGEST_ROW:,}"
        )
    value = value.strip()
    if not value and not optional:
        raise MalformedRowError(f"no text in {key!r}")
    return value


def _number(value: Any, key: str) -> float:
    try:
        if isinstance(value, str) and "_" in value:  # Python reads "1_0" as 10.
            raise ValueError
        number = float(value)
    except (TypeError, ValueError):
        raise MalformedRowError(f"{key!r} is not a number: {value!r:.40}") from None
    except OverflowError:  # A whole number in JSON may have any number of digits.
        number = math.inf
    if not math.isfinite(number):
        raise MalformedRowError(f"{key!r} is not a finite number")
    return number


def _present(column: Column, names: Mapping[str, Any]) -> str | None:
    """The first of the alternative names of a column that is among the folded names."""
    alternatives = column if isinstance(column, tuple) else (str(column),)
    return next((name for name in map(_folded, alternatives) if name in names), None)


def _folded(name: str) -> str:
    return name.strip().casefold()
