"""Tables of .tsv, .csv, .jsonl and .parquet files, read once into Arrow.

Arrow parses whole blocks of a file. A row that may be bad, such as one with too few fields, an
empty text or a byte that is not UTF-8, is parsed again separately by `_records`, which says what is
wrong with it. So the rows and the report are those of `TableReader`, in a fraction of its time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json

from use_st5.data import _records
from use_st5.data._blocks import Block, Lines, block_of
from use_st5.data._reader import MalformedRowError
from use_st5.data._records import (
    Row,
    csv_records,
    format_of,
    json_object,
    line_record,
    parquet_batches,
    tab_separated,
)
from use_st5.data.read_report import ReadReport
from use_st5.data.table_reader import TableReader, checked_length
from use_st5.data.tfds_reader import TFDSReader
from use_st5.io.files import file_sha256
from use_st5.io.lines import GZIP_DAMAGE, damaged_gzip, unpacked
from use_st5.io.streams import batched

# If the share of bad rows is larger, the file does not have the expected content.
_MAX_MALFORMED = 0.1
# The number of examples that become a table at once.
_AT_ONCE = 10_000
# A part of jsonl with a bad line is halved to find the line, but not below this number of lines.
_FEW_LINES = 2048
# All characters that `str.strip` removes.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
# The texts that Arrow reads as the same number as `float`.
_NUMBER = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][-+]?[0-9]{1,2})?$"
TEXT = pa.large_string()
_DELIMITERS = {"tsv": "\t", "csv": ","}
# Good rows, and their places in a block, int `[rows]`.
_Part = tuple[pa.Table, np.ndarray]


class Table(TableReader):
    """The rows of one file as an Arrow table of texts, labels and scores.

    Args:
        path: The file.
        columns: Key of a row → name of the column.
        label: The key whose values may be whole numbers; they become texts.
        score: The key whose values are finite numbers.

    Attributes:
        sha256: The sha256 of the file; empty until it is read.
    """

    warns = False

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, str],
        *,
        label: str | None = None,
        score: str | None = None,
    ) -> None:
        self.expects = f"rows with {', '.join(columns)}"
        super().__init__(path, dict(columns), max_malformed=_MAX_MALFORMED)
        self.label, self.score = label, score
        self.sha256 = ""
        self._path = self.paths[0]
        self._column_names = [*columns.values()]
        self._format = format_of(self._path)
        # Found in the first row: for delimited text the places of the columns, for jsonl the types.
        self._header: list[str] = []
        self._positions: dict[str, int] = {}
        self._types: dict[str, pa.DataType] = {}

    def read(self) -> pa.Table:
        """Reads the file once: scores become float64, all other columns large_string."""
        self.report = ReadReport()
        if self._format == "parquet":
            parts = [*self._of_parquet()]
            self.sha256 = file_sha256(self._path)
        else:
            with _HashedFile(self._path) as raw, io.BufferedReader(raw) as file:
                lines = Lines(unpacked(file, where=str(self._path)), str(self._path))
                try:
                    parts = [*(self._of_csv if self._format == "csv" else self._of_lines)(lines)]
                except GZIP_DAMAGE as error:
                    raise damaged_gzip(str(self._path), lines.number - 1, error) from error
                while file.read(2**20):  # Bytes after the last member of a gzip file.
                    pass
                self.sha256 = raw.sha256.hexdigest()
        self._check_seen(self._path)
        self._check_report()
        return pa.concat_tables(parts)

    def _of_lines(self, lines: Lines) -> Iterator[pa.Table]:
        while len(block := lines.block()):
            yield self._good_rows(block)

    def _of_csv(self, lines: Lines) -> Iterator[pa.Table]:
        rest = block_of(b"", 1)
        while not lines.ended:
            block = lines.block().joined_to(rest)
            records, regular = block.regular()
            if len(records):
                yield self._good_rows(records)
            rest = block.behind(records)
            if len(rest) and (lines.ended or not regular or rest.is_long):
                # Arrow would read these quotes differently: parse these lines row by row.
                following = itertools.chain(rest.all_lines(), lines)
                rows = self._csv_rows(following, rest.first, enough=len(rest))
                yield self._table(example for row in rows for example in self._alone(*row))
                rest = block_of(b"", lines.number)

    def _of_parquet(self) -> Iterator[pa.Table]:
        def choose(names: list[str]) -> list[str]:
            places = self._places(self._path, names)
            source_names.update({key: names[place] for key, place in places.items()})
            return [*source_names.values()]

        source_names: dict[str, str] = {}
        first = 1
        for batch in parquet_batches(self._path, choose):
            rows = pa.table([batch.column(name) for name in source_names.values()], [*source_names])
            yield self._good_rows(_ParquetRows(rows, first))
            first += rows.num_rows

    def _good_rows(self, block: Block | _ParquetRows) -> pa.Table:
        """Returns the good rows of a block, in their order."""
        total, start = len(block), 0
        single_rows: list[dict[str, Any]] = []
        single_places: list[int] = []

        def take(place: int) -> None:
            for number, row in self._rows_of(block, place):
                examples = self._alone(number, row)
                single_rows.extend(examples)
                single_places.extend([place] * len(examples))

        while start < total and not self._is_begun:
            take(start)
            start += 1
        parts = [self._cleaned(*part) for part in self._parsed(block, start)]
        parsed = np.concatenate([places for _, places in parts] or [np.empty(0, np.int64)])
        if self._format == "csv" and isinstance(block, Block):
            for place in parsed[block.extra_lines[parsed] > 0].tolist():
                self.report.add_joined(int(block.numbers[place]), int(block.extra_lines[place]))
        self.report.rows += len(parsed)
        self.report.examples += len(parsed)
        for place in np.setdiff1d(np.arange(start, total), parsed, assume_unique=True).tolist():
            take(place)
        merged = pa.concat_tables([*(table for table, _ in parts), self._table(single_rows)])
        if not single_rows:
            return merged
        order = np.argsort(np.concatenate([parsed, single_places]), kind="stable")
        return merged.take(order)

    # Rows that are parsed one by one.

    @property
    def _is_begun(self) -> bool:
        """Whether the columns are known."""
        return bool(self._positions or self._types) or self._format == "parquet"

    def _rows_of(self, block: Block | _ParquetRows, place: int) -> Iterable[tuple[int, Row]]:
        """Returns the row of a record of a block; for a broken csv record, one row per line."""
        if isinstance(block, _ParquetRows):
            return [(block.first + place, block.rows.slice(place, 1).to_pylist()[0])]
        lines, number = block.lines(place), int(block.numbers[place])
        if self._format == "csv":
            return self._csv_rows(lines, number)
        parse = tab_separated if self._format == "tsv" else json_object
        return [(number, line_record(lines[0], parse))]

    def _csv_rows(
        self, lines: Iterable[bytes], first: int, enough: int | None = None
    ) -> Iterator[tuple[int, Row]]:
        width = len(self._header)
        return csv_records(lines, where=str(self._path), first=first, width=width, enough=enough)

    def _alone(self, number: int, row: Row) -> list[dict[str, Any]]:
        """Returns the example of a row; an empty list for a bad row and for the header."""
        if self._format in _DELIMITERS:
            self._note_joined(number, row)
            if not self._positions and isinstance(row, list):
                self._positions, self._header = self._places(self._path, row), row
                return []
            row = self._from_fields(row, self._positions, len(self._header))
        elif self._format == "jsonl":
            row = self._from_object(row)
            if not self._types and isinstance(row, dict):
                self._types = {key: self._type_of(key, row.get(key)) for key in self.columns}
        return self._taken(self._path, number, row)

    def _type_of(self, key: str, value: Any) -> pa.DataType:
        """Guesses the type of a key's values in all rows from its value in the first row."""
        if key == self.label and isinstance(value, int):
            return pa.int64()
        return pa.float64() if key == self.score and not isinstance(value, str) else TEXT

    def _examples(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [clean_row(row, self.columns, self.label, self.score)]

    def _table(self, examples: Iterable[Mapping[str, Any]]) -> pa.Table:
        return table_of(examples, self.columns, self.score)

    # Rows that are parsed together.

    def _parsed(self, block: Block | _ParquetRows, begun: int) -> Iterator[_Part]:
        """Yields the rows of a block from a place on that have the usual form."""
        if isinstance(block, _ParquetRows):
            yield block.rows, np.arange(len(block))
            return
        if self._format == "jsonl":
            odd, parse = block.odd_objects(), self._objects
        else:
            delimiter, quoted = _DELIMITERS[self._format], self._format == "csv"
            odd = block.odd_fields(ord(delimiter), len(self._header), quoted=quoted)
            parse = self._delimited
        places = np.flatnonzero(~odd)
        places = places[np.searchsorted(places, begun) :]
        if len(places):
            yield from parse(block, places)

    def _delimited(self, block: Block, places: np.ndarray) -> Iterator[_Part]:
        quoted = self._format == "csv"
        names = [str(place) for place in range(len(self._header))]
        selected_names = [names[place] for place in self._positions.values()]
        data = b"\n" + block.joined(places)  # Arrow skips a blank line, but also an initial mark.
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=_block_size(block)),
            parse_options=arrow_csv.ParseOptions(
                delimiter=_DELIMITERS[self._format],
                quote_char='"' if quoted else False,
                double_quote=quoted,
                newlines_in_values=quoted,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=selected_names,
                column_types=dict.fromkeys(selected_names, TEXT),
                check_utf8=False,
            ),
        ).rename_columns([*self._positions])
        if quoted and b"\r" in data:  # As from `csv`, which gets lines without it.
            columns = [pc.replace_substring(each, "\r\n", "\n") for each in table.columns]
            table = pa.table(columns, table.column_names)
        if table.num_rows == len(places):
            yield table, places

    def _objects(self, block: Block, places: np.ndarray) -> Iterator[_Part]:
        data = block.joined(places)
        schema = pa.schema([*zip(self._column_names, self._types.values(), strict=True)])
        table = None
        with contextlib.suppress(pa.ArrowException, ValueError):
            table = arrow_json.read_json(
                pa.BufferReader(data),
                read_options=arrow_json.ReadOptions(block_size=_block_size(block)),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="ignore"
                ),
            )
        if table is not None and table.num_rows == len(places) and not self._spelled(data):
            columns = [table[name] for name in schema.names]
            yield pa.table(columns, [*self._types]), places
        elif len(places) > _FEW_LINES:
            half = len(places) // 2
            yield from self._objects(block, places[:half])
            yield from self._objects(block, places[half:])

    def _spelled(self, data: bytes) -> bool:
        """Whether there is a key that differs from a column's name only in case or spaces."""
        names = [re.escape(name.encode()) for name in self._column_names]
        folded_names = [re.escape(name.strip().casefold().encode()) for name in self._column_names]
        exact = re.compile(b'"(?:%s)"\\s*:' % b"|".join(names))
        alike = re.compile(b'"\\s*(?:%s)\\s*"\\s*:' % b"|".join(folded_names), re.IGNORECASE)
        return len(exact.findall(data)) != len(alike.findall(data))

    def _cleaned(self, table: pa.Table, places: np.ndarray) -> _Part:
        """Returns the rows that are certainly good; their texts lose white space around them."""
        good = np.ones(table.num_rows, bool)
        columns = []
        for key in self.columns:
            values = table[key].combine_chunks()
            clean = _numbers if key == self.score else _texts
            if clean is _texts and key == self.label and pa.types.is_integer(values.type):
                values = values.cast(TEXT)
            cleaned, valid = clean(values)
            columns.append(cleaned)
            good &= valid
        cleaned = pa.table(columns, [*self.columns])
        return (cleaned, places) if good.all() else (cleaned.filter(good), places[good])


@dataclasses.dataclass(frozen=True)
class _ParquetRows:
    rows: pa.Table
    first: int

    def __len__(self) -> int:
        return self.rows.num_rows


class _HashedFile(io.FileIO):
    """A file whose sha256 is computed while it is read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sha256 = hashlib.sha256()

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self.sha256.update(memoryview(buffer)[:count])
        return count


class DataSet:
    """The rows of a TensorFlow data set, in the same form as `Table` gives those of a file.

    Args:
        name: `NAME[SPLIT]`; the split is "train" if none is named.
        columns: As for `Table`.
        label: The key of the class, which becomes the name of the class; -1 means a hidden class.
        score: As for `Table`.

    Attributes:
        report: The report of the latest pass.
    """

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        *,
        label: str | None = None,
        score: str | None = None,
    ) -> None:
        self._name, self._columns = name, columns
        self._label, self._score = label, score
        self._reader = self.open(name)
        self.report = ReadReport()

    @staticmethod
    def open(name: str) -> TFDSReader:
        """Returns the reader of a data set."""
        data_set, _, split = name.removesuffix("]").partition("[")
        return TFDSReader(data_set, split=split or "train")

    def read(self) -> pa.Table:
        """Reads it once, as `Table.read`."""
        return table_of(self, self._columns, self._score)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        report = self.report = ReadReport()
        label = self._label or ""
        names = self._reader.class_names(self._columns[label]) if label else None
        for number, row in self._reader.numbered():
            try:
                if isinstance(row, MalformedRowError):
                    raise row
                values = {key: row[column] for key, column in self._columns.items()}
                if values.get(label) == -1:
                    report.skipped["no label"] += 1
                    continue
                if names:
                    values[label] = names[values[label]]
                cleaned = clean_row(values, self._columns, self._label, self._score)
            except MalformedRowError as reason:
                report.add_malformed(Path(self._name), number, str(reason))
                continue
            report.rows += 1
            report.examples += 1
            yield cleaned
        expects = f"rows with {', '.join(self._columns)}"
        report.check(self._name, max_malformed=_MAX_MALFORMED, expects=expects)


def table_of(
    examples: Iterable[Mapping[str, Any]], columns: Iterable[str], score: str | None = None
) -> pa.Table:
    """Examples as a table of these columns."""
    kinds = [(key, pa.float64() if key == score else TEXT) for key in columns]
    schema = pa.schema(kinds)
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
        if value is not None and not isinstance(value, str):
            raise MalformedRowError(f"{key!r} is of type {type(value).__name__}, expected text")
        values[key] = checked_length(value or "", key).strip()
        if not values[key]:
            raise MalformedRowError(f"no text in {key!r}")
    return values


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


def _texts(values: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Returns values as texts, and which of them are certainly good."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return pa.nulls(len(values), TEXT), np.zeros(len(values), bool)
    texts = pc.utf8_trim(values.cast(TEXT), characters=_SPACES)
    sizes = pc.fill_null(pc.binary_length(values.cast(TEXT)), 0)
    filled = pc.fill_null(pc.greater(pc.binary_length(texts), 0), False)
    return texts, filled.to_numpy(False) & (sizes.to_numpy(False) <= _records.LONGEST_ROW)


def _numbers(values: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Returns values as float64, and which of them are certainly finite numbers."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = pc.utf8_trim(values.cast(TEXT), characters=_SPACES)
        plain = pc.match_substring_regex(texts, _NUMBER)
        values = pc.if_else(plain, texts, pa.scalar(None, TEXT))
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values = pa.nulls(len(values), pa.float64())
    numbers = values.cast(pa.float64(), safe=False)
    return numbers, pc.fill_null(pc.is_finite(numbers), False).to_numpy(False)


def _block_size(block: Block) -> int:
    """Returns the number of bytes that Arrow parses at once: all bytes if a record is long."""
    return len(block.data) + 1 if block.longest > 2**19 else 2**20
