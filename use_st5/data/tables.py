"""Named columns of jsonl, tsv, csv and parquet files, row by row or as one Arrow table.

`TableReader` goes through the rows one by one and says what is wrong with each bad one. `Table`
lets Arrow parse the file in blocks; if Arrow refuses a block, or a row in it might be bad, it reads
the file again as `TableReader` does. So there is one reader that knows bad rows.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
from pyarrow import parquet

from use_st5.data.formats import (
    LONGEST_ROW,
    format_of,
    json_object,
    parquet_batches,
    records,
)
from use_st5.data.reader import MalformedRowError, Reader, ReadReport
from use_st5.io.files import file_sha256
from use_st5.io.lines import GZIP_DAMAGE, batched, read_lines, unpacked

# A position from 0, a name, or several names, of which the first existing one is used.
Column = int | str | tuple[str, ...]
TEXT = pa.large_string()
# If the share of bad rows of a user's file is larger, it does not have the expected content.
MAX_MALFORMED = 0.1
# Rows that are read to find the names of the columns.
_SAMPLE = 200
# The number of examples that become a table at once.
_AT_ONCE = 10_000
# The bytes that Arrow parses at once.
_BLOCK = 2**23
# All characters that `str.strip` removes.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))


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
        ValueError: During the pass: as in `Reader`, a needed column is missing or exists twice, or
            a quote of a csv is not closed within a few lines.
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
        exists: bool = True,
    ) -> None:
        super().__init__(path, strict=strict, max_malformed=max_malformed, exists=exists)
        self.columns = dict(columns)
        self.optional = frozenset(optional)
        self.file_format = file_format
        self.header = any(not isinstance(column, int) for column in columns.values())

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        file_format = self.file_format or format_of(path)
        if file_format == "parquet":
            rows = (row for batch in self._parquet(path) for row in batch.to_pylist())
            return enumerate(rows, start=1)
        rows_of_fields = records(path, file_format=file_format)
        if file_format == "jsonl":
            return ((line, self._from_object(row)) for line, row in rows_of_fields)
        return self._table_rows(path, rows_of_fields)

    def _parquet(self, path: Path) -> Iterator[pa.Table]:
        """Yields tables of the columns, named by their keys."""
        names: dict[str, str] = {}

        def choose(found: list[str]) -> Iterable[str]:
            names.update({key: found[at] for key, at in self._places(path, found).items()})
            return dict.fromkeys(names.values())

        for batch in parquet_batches(path, choose):
            yield pa.table([batch.column(name) for name in names.values()], [*names])

    def _table_rows(self, path: Path, rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        names: list[str] = []
        places: dict[str, int] | None = None
        for line, row in rows:
            if isinstance(row, list) and (extra := sum(field.count("\n") for field in row)):
                self.report.add_joined(line, extra)
            if places is None and isinstance(row, list):
                names = row if self.header else []
                places = self._places(path, names)
                if self.header:
                    continue
            yield line, self._from_fields(row, places, len(names))

    def _places(self, path: Path, names: list[str]) -> dict[str, int]:
        """Key → position in a row."""
        positions = {name.strip().casefold(): place for place, name in enumerate(names)}
        places: dict[str, int] = {}
        for key, column in self.columns.items():
            if isinstance(column, int):
                places[key] = column
                continue
            alternatives = _alternatives(column)
            if matches := [name for name in alternatives if name in positions]:
                if (spellings := _alike(matches[0], names))[1:]:
                    raise ValueError(
                        f"{path}: expected one column {spellings[0]!r}, found {len(spellings)} of "
                        f"that name: {', '.join(map(repr, spellings))}. Rename or leave out the "
                        "others."
                    )
                places[key] = positions[matches[0]]
            elif key not in self.optional:
                raise ValueError(
                    f"{path}: the header has no column for {key!r}. Expected "
                    f"{' or '.join(map(repr, alternatives))}, received {names}"
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
            name = next((name for name in _alternatives(column) if name in fields), None)
            if name is None:
                continue
            if len(fields) < len(row) and (spellings := _alike(name, row))[1:]:
                named = " and ".join(map(repr, spellings))
                return MalformedRowError(f"{named} name the same column")
            values[key] = fields[name]
        return values

    def _examples(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return [{key: self._text(row, key) for key in self.columns}]

    def _text(self, row: dict[str, Any], key: str) -> str:
        """Returns the text of one column; raises MalformedRowError if there is none."""
        return clean_text(row.get(key), key, optional=key in self.optional)


class Table(TableReader):
    """The rows of one file as an Arrow table of texts, labels and scores.

    Args:
        rows: The file, or rows in memory.
        columns: Key of a row → name of the column.
        name: What rows in memory are called.
        label: The key whose values may be whole numbers; they become texts.
        score: The key whose values are finite numbers.

    Attributes:
        content: The sha256 of the file; empty until it is read.
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
    ) -> None:
        self.memory = rows if isinstance(rows, pa.Table) else None
        path = Path(name) if isinstance(rows, pa.Table) else rows
        super().__init__(path, dict(columns), max_malformed=MAX_MALFORMED, exists=rows is path)
        self.expects = f"rows with {', '.join(columns)}"
        self.label, self.score = label, score
        self.content = ""

    def read(self) -> pa.Table:
        """Reads the file: scores become float64, all other columns large_string."""
        (path,) = self.paths
        try:
            if self.memory is not None:
                parts = iter([self._memory_columns()])
            else:
                is_parquet = format_of(path) == "parquet"
                parts = self._parquet(path) if is_parquet else self._parsed_blocks(path)
            table = pa.concat_tables(map(self._cleaned, parts))
            if not table.num_rows:
                raise ValueError("no rows")
        except (ValueError, OSError, csv.Error, pa.ArrowException, *GZIP_DAMAGE):
            # This says what is wrong, row by row.
            table = table_of(self, self.columns, self.score)
        else:
            self.report = ReadReport(rows=table.num_rows, examples=table.num_rows)
        if self.memory is None:
            self.content = file_sha256(path)
        else:
            parquet.write_table(self.memory, sink := pa.BufferOutputStream())
            self.content = hashlib.sha256(sink.getvalue()).hexdigest()
        return table

    def _memory_columns(self) -> pa.Table:
        assert self.memory is not None
        columns = [self.memory[name] for name in self.columns.values()]
        return pa.table(columns, [*self.columns])

    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        if self.memory is None:
            return super()._rows(path)
        return enumerate(self._memory_columns().to_pylist(), start=1)

    def _examples(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [clean_row(row, self.columns, self.label, self.score)]

    def _parsed_blocks(self, path: Path) -> Iterator[pa.Table]:
        """Yields the rows as Arrow reads them; a ValueError if a row does not have a line."""
        with path.open("rb") as file:
            content = unpacked(file, where=str(path))
            parse = None
            while data := content.read(_BLOCK):
                tail = content.readline(LONGEST_ROW + 1)
                if len(tail) > LONGEST_ROW:
                    raise ValueError("a long line")
                data += tail
                data = data if data.endswith(b"\n") else data + b"\n"
                data.decode()
                if data.count(b"\r") != data.count(b"\r\n"):
                    raise ValueError("carriage returns")
                if parse is None:
                    data = data.removeprefix(b"\xef\xbb\xbf")
                    parse, data = self._parser(path, data)
                table = parse(data)
                if table.num_rows != data.count(b"\n"):
                    raise ValueError("rows over several lines, or blank ones")
                yield table

    def _parser(self, path: Path, data: bytes) -> tuple[Callable[[bytes], pa.Table], bytes]:
        """Returns the parser for a file that begins with `data`, and `data` without the header."""
        file_format = format_of(path)
        first, _, rest = data.partition(b"\n")
        text = first.decode().removesuffix("\r")
        if file_format == "jsonl":
            row = self._from_object(json_object(text))
            if not isinstance(row, dict):
                raise row
            schema = []
            for key, name in self.columns.items():
                # The type of the values in all rows is guessed from the one in the first row.
                is_number = key == self.score and not isinstance(row.get(key), str)
                is_class = key == self.label and isinstance(row.get(key), int)
                schema.append(
                    (name, pa.float64() if is_number else pa.int64() if is_class else TEXT)
                )
            return functools.partial(_parsed_objects, pa.schema(schema), [*self.columns]), data
        names = next(csv.reader([text], strict=True)) if file_format == "csv" else text.split("\t")
        places = self._places(path, names)
        return functools.partial(_parsed_fields, places, len(names), file_format), rest

    def _cleaned(self, table: pa.Table) -> pa.Table:
        """The rows of a table without white space around texts; a ValueError if one may be bad."""
        columns = []
        for key in self.columns:
            values = table[key]
            kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            if is_text:
                sizes = pc.binary_length(values.cast(TEXT))
                values = pc.utf8_trim(values.cast(TEXT), characters=_SPACES)
            if key == self.score:
                values = values.cast(pa.float64(), safe=False)
                good = pc.is_finite(values)
            elif is_text:
                good = pc.and_(pc.greater(pc.binary_length(values), 0), pc.less(sizes, LONGEST_ROW))
            elif key == self.label and pa.types.is_integer(kind):
                values = values.cast(TEXT)
                good = pc.is_valid(values)
            else:
                raise ValueError("no texts")
            if not pc.all(good, skip_nulls=False, min_count=0).as_py():
                raise ValueError("a row that may be bad")
            columns.append(values)
        return pa.table(columns, [*self.columns])


def _parsed_fields(
    places: Mapping[str, int], width: int, file_format: str, data: bytes
) -> pa.Table:
    """Rows of tsv or csv as Arrow reads them; a ValueError if Python may read them differently."""
    data = b"\n" + data  # Arrow skips a blank line, but also a byte order mark.
    quoted = file_format == "csv" and b'"' in data
    if quoted and not _has_plain_quotes(np.frombuffer(data, np.uint8)):
        raise ValueError("quotes")
    names = [str(place) for place in range(width)]
    selected = [names[place] for place in places.values()]
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(column_names=names),
        parse_options=arrow_csv.ParseOptions(
            delimiter="," if file_format == "csv" else "\t",
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=selected,
            column_types=dict.fromkeys(selected, TEXT),
            check_utf8=False,
        ),
    )
    if file_format == "csv":
        longest = max(pc.max(pc.binary_length(each)).as_py() or 0 for each in table.columns)
        if longest > csv.field_size_limit():
            raise ValueError("a field that is too long for csv")
    return table.rename_columns([*places])


def _has_plain_quotes(data: np.ndarray) -> bool:
    """Whether every quote opens or closes a field, or is one of two inside a field."""
    quotes = np.flatnonzero(data == ord('"'))
    before, behind = data[quotes[0::2] - 1], data[quotes[1::2] + 1]
    return bool(
        len(quotes) % 2 == 0
        and np.isin(before, np.frombuffer(b',\n"', np.uint8)).all()
        and np.isin(behind, np.frombuffer(b',\n\r"', np.uint8)).all()
    )


def _parsed_objects(schema: pa.Schema, keys: list[str], data: bytes) -> pa.Table:
    """Rows of jsonl as Arrow reads them; a ValueError if an object may have a key twice."""
    table = arrow_json.read_json(
        pa.BufferReader(data),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        ),
    )
    for name in schema.names:
        key = re.compile(rb'"\s*%s\s*"\s*:' % re.escape(name.strip().encode()), re.IGNORECASE)
        if len(key.findall(data)) != table.num_rows:
            raise ValueError("keys that differ in case, or occur twice")
    return pa.table([table[name] for name in schema.names], keys)


def column_names(path: Path, *, where: str) -> list[str]:
    """The names of the columns of a table; errors call it `where`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file has no rows with named columns.
    """
    bad: list[str] = []
    sample: list[Any] = []
    lines = read_lines(path, longest=LONGEST_ROW, skip_long=True)
    if format_of(path) == "jsonl" and next(lines, (0, b""))[1].lstrip().startswith(b"["):
        raise ValueError(
            f"{where}: expected a JSON object in each line, found a JSON array. In Python, give "
            "its rows: train(…, json.load(open(FILE))); or write a line for each object."
        )
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
    if bad:
        raise ValueError(
            f"{where}: expected rows with named columns, found {len(bad):,} malformed ones only. "
            f"The first: {bad[0]}. Does the file have the format of its suffix?"
        )
    raise ValueError(f"{where}: expected rows with named columns, found an empty file.")


def table_of(
    examples: Iterable[Mapping[str, Any]], columns: Iterable[str], score: str | None = None
) -> pa.Table:
    """Examples as a table of these columns."""
    schema = pa.schema([(key, pa.float64() if key == score else TEXT) for key in columns])
    parts = [pa.Table.from_pylist(part, schema) for part in batched(examples, _AT_ONCE)]
    return pa.concat_tables(parts or [schema.empty_table()])


def clean_row(
    row: Mapping[str, Any], keys: Iterable[str], label: str | None, score: str | None
) -> dict[str, Any]:
    """A row's values: texts and labels without white space around them, scores as numbers."""
    values: dict[str, Any] = {}
    for key in keys:
        value = row.get(key)
        if key == score:
            values[key] = _number(value, key)
            continue
        if key == label and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        values[key] = clean_text(value, key)
    return values


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


def _alternatives(column: Column) -> tuple[str, ...]:
    names = column if isinstance(column, tuple) else (str(column),)
    return tuple(name.strip().casefold() for name in names)


def _alike(folded: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.strip().casefold() == folded]
