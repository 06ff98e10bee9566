"""Rows of one task: texts and labels as strings, scores as floats, bad rows counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from use_st5.data._reader import MalformedRowError
from use_st5.data.read_report import ReadReport
from use_st5.data.table_reader import TableReader, checked_length
from use_st5.data.text_reader import TextReader
from use_st5.data.tfds_reader import TFDSReader
from use_st5.training.tasks import TaskSpec

Row = dict[str, Any]

# More of these, and the file is not what it was taken for.
_MAX_MALFORMED = 0.1


class KnownLabels(dict[str, int]):
    """Label → its number, of the labels that a file had when it was first read."""

    def __missing__(self, label: str) -> int:
        raise ValueError(
            f"expected one of the {len(self)} labels that the file had when it was first read, "
            f"received {label!r:.80}. The file changed while it was read: start again when nothing "
            "writes to it any more."
        )


class TextFile:
    """A plain text: its sentences with their neighbours, or each alone."""

    def __init__(self, path: Path, *, running: bool) -> None:
        self._reader = TextReader(path)
        self._running = running

    @property
    def report(self) -> ReadReport:
        """Of the latest pass."""
        return self._reader.report

    def __iter__(self) -> Iterator[Row]:
        if not self._running:
            return ({"text": sentence} for sentence in self._reader.sentences())
        return (
            {"previous": each["previous"], "text": each["sentence"], "next": each["next"]}
            for each in self._reader
        )


class Table(TableReader):
    """The rows of a table, as their task has them."""

    warns = False

    def __init__(self, path: Path, kind: TaskSpec, columns: Mapping[str, str]) -> None:
        self.expects = f"rows with {', '.join(kind.needed)}"
        super().__init__(path, dict(columns), max_malformed=_MAX_MALFORMED)
        self._kind = kind

    def _examples(self, row: Row) -> list[Row]:
        return [_cleaned(row, self._kind, self.columns)]


def _cleaned(row: Mapping[str, Any], kind: TaskSpec, keys: Iterable[str]) -> Row:
    """A row's values as its task has them.

    Raises:
        MalformedRowError: One is missing or of another kind.
    """
    values: Row = {}
    for key in keys:
        value = row.get(key)
        if key == kind.score:
            values[key] = _number(value, key)
            continue
        if key == kind.label and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if value is not None and not isinstance(value, str):
            raise MalformedRowError(f"{key!r} is of type {type(value).__name__}, expected text")
        values[key] = checked_length(value or "", key).strip()
        if not values[key]:
            raise MalformedRowError(f"no text in {key!r}")
    return values


def _number(value: Any, key: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise MalformedRowError(f"{key!r} is no number: {value!r:.40}") from None
    except OverflowError:  # A whole number of JSON has any number of digits.
        number = math.inf
    if not math.isfinite(number):
        raise MalformedRowError(f"{key!r} is no finite number")
    return number


def data_set(name: str) -> TFDSReader:
    """The reader of `NAME[SPLIT]`; of the split "train" where none is named."""
    data_set, _, split = name.removesuffix("]").partition("[")
    return TFDSReader(data_set, split=split or "train")


class DataSet:
    """The rows of a TensorFlow data set, as their task has them."""

    def __init__(self, name: str, kind: TaskSpec, columns: Mapping[str, str]) -> None:
        self._reader = data_set(name)
        self._name, self._kind, self._columns = name, kind, columns
        self.report = ReadReport()

    def __iter__(self) -> Iterator[Row]:
        report = self.report = ReadReport()
        label = self._kind.label or ""
        names = self._reader.class_names(self._columns[label]) if label else None
        for number, row in enumerate(self._reader, start=1):
            values = {key: row[column] for key, column in self._columns.items()}
            try:
                if values.get(label) == -1:  # TFDS's mark of a hidden label.
                    report.skipped["no label"] += 1
                    continue
                if names:
                    values[label] = names[values[label]]
                cleaned = _cleaned(values, self._kind, self._columns)
            except MalformedRowError as reason:
                report.add_malformed(Path(self._name), number, str(reason))
                continue
            report.rows += 1
            report.examples += 1
            yield cleaned
        expects = f"rows with {', '.join(self._kind.needed)}"
        report.check(self._name, max_malformed=_MAX_MALFORMED, expects=expects)
