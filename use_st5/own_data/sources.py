"""The files of a user: tables, text and TensorFlow data sets, as rows of one task each."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from use_st5._files import file_sha256
from use_st5._lines import read_lines
from use_st5._progress import watched
from use_st5._remote_files import as_written, brought, remote_path
from use_st5.data._reader import MalformedRowError
from use_st5.data._records import format_of, records
from use_st5.data.read_report import ReadReport
from use_st5.data.sentence_splitter import split_sentences
from use_st5.data.table_reader import TableReader
from use_st5.data.text_reader import TextReader
from use_st5.data.tfds_reader import TFDSReader
from use_st5.own_data.columns import NEIGHBOURS, TEXTS, TaskKind, kind_of

Row = dict[str, Any]

_TEXT = re.compile(r"\.txt(\.gz)?$", re.IGNORECASE)
_TFDS = re.compile(r"[a-z]\w*(/[\w.-]+)?(:[\d.]+)?(\[.+\])?")
# Rows that are looked at for the names of the columns, and for whether text runs on.
_SAMPLE = 200
# Sentences of a paragraph on average, from which on a text is one that runs.
_RUNNING = 2.0
# More of these, and the file is not what it was taken for.
_MAX_MALFORMED = 0.1


@dataclasses.dataclass(frozen=True)
class Source:
    """One file, or one TensorFlow data set, and what it teaches.

    Attributes:
        name: As it was given; it may lie elsewhere (gs:// and the like).
        kind: Its task.
        columns: Key of a row → name of the column.
        rate: Its weight in a mixture; None: the number of its examples.
        asked: Whether its task was said, and not read from its columns.
    """

    name: str
    kind: TaskKind
    columns: Mapping[str, str]
    rate: float | None = None
    asked: bool = False

    @cached_property
    def reader(self) -> Iterable[Row]:
        """What reads it anew in each pass."""
        if self.is_text:
            return _TextFile(self.path, running=self.kind is NEIGHBOURS)
        if not self.path.exists():
            return _DataSet(self.name, self.kind, self.columns)
        return _Table(self.path, self.kind, self.columns)

    @cached_property
    def path(self) -> Path:
        """Where it is read: of a file elsewhere, a copy. There is nothing of a data set's name."""
        return brought(self.name)

    @property
    def is_text(self) -> bool:
        """Whether it is a plain text, and no table."""
        return _is_text(self.path)

    @property
    def report(self) -> ReadReport:
        """Of the latest pass."""
        return self.reader.report  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Row]:
        """Rows: texts and labels as strings, scores as floats.

        Of running text "previous", "text" and "next".
        """
        if self.kind is NEIGHBOURS and not self.is_text:
            return itertools.chain.from_iterable(map(_neighbours, self.reader))
        return iter(self.reader)

    def watched(self, total: int | None = None) -> Iterator[Row]:
        """The rows, with a bar while they are read: a pass over a large file takes minutes.

        Args:
            total: How many they are, where that is known.
        """
        return watched(self, f"Reading {Path(self.name).name}", total, transient=True)

    def identity(self) -> str:
        """What tells it from one with other content: its sha256, or its name."""
        return file_sha256(self.path) if self.path.is_file() else self.name


def open_source(
    given: str | os.PathLike[str],
    *,
    task: str | Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Source:
    """Looks at a file's columns, and says what it teaches.

    Args:
        given: A file, or the name of a TensorFlow data set, `NAME[SPLIT]`; `=RATE` may follow.
        task: The name of its task, or such names by file; None: as its columns say.
        columns: Key, such as "anchor" → the file's own name for that column.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is empty, of no known format, or no task fits its columns.
    """
    name, rate = split_rate(given)
    task = task.get(name) if isinstance(task, Mapping) else task
    name = as_written(name)
    path = brought(name)
    if _is_text(path):
        running = _runs_on(TextReader(path))
        kind = kind_of(["text"], name, task or (NEIGHBOURS if running else TEXTS).name)
        return Source(name, kind, {"text": "text"}, rate, task is not None)
    names = _column_names(name, path)
    own = {theirs.casefold(): key for key, theirs in (columns or {}).items()}
    renamed = {own.get(each.strip().casefold(), each): each for each in names}
    kind = kind_of([*renamed], name, task)
    found = {key: renamed[each] for key, each in kind.found_in([*renamed]).items()}
    source = Source(name, kind, found, rate, task is not None)
    if kind is NEIGHBOURS and task is None and not _rows_run_on(source):
        return dataclasses.replace(source, kind=TEXTS)
    return source


def _is_text(path: Path) -> bool:
    """Whether a file is a plain text: published tables are called .txt as well.

    Raises:
        FileNotFoundError: There is no such file.
    """
    if not _TEXT.search(path.name):
        return False
    first = next((line for _, line in read_lines(path)), b"")
    return b"\t" not in first


def split_rate(given: str | os.PathLike[str]) -> tuple[str, float | None]:
    """A name as it was given, and the rate behind `=`."""
    given = os.fspath(given)
    name, equals, rate = given.rpartition("=")
    if not equals or (not remote_path(given) and Path(given).exists()):
        return given, None
    try:
        value = float(rate)
    except ValueError:
        return given, None
    if not 0 < value < float("inf"):
        raise ValueError(f"{given}: expected a positive rate behind '=', received {rate}.")
    return name, value


def _column_names(name: str, path: Path) -> list[str]:
    """The names of the columns of a table or a data set, which has a name and no path.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: There is nothing in it.
    """
    if not path.exists():
        if path.suffix or not _TFDS.fullmatch(name):
            raise FileNotFoundError(
                f"{name}: expected a file (.tsv, .csv, .jsonl, .parquet, .txt) or the name of a "
                "TensorFlow data set, found neither."
            )
        return [*_data_set(name).columns]
    rows = (row for _, row in records(path, file_format=format_of(path)))
    good = (row for row in rows if isinstance(row, list | dict))
    sample = list(itertools.islice(good, _SAMPLE))
    if not sample:
        raise ValueError(f"{name}: expected rows with named columns, found an empty file.")
    if isinstance(sample[0], list):
        return sample[0]
    return [*dict.fromkeys(key for row in sample for key in row)]


def _runs_on(reader: TextReader) -> bool:
    """Whether the paragraphs of a file hold several sentences each, or a line is but a sentence."""
    sentences = sum(1 for _ in itertools.islice(reader.sentences(), _SAMPLE * 10))
    return sentences >= _RUNNING * max(1, reader.report.rows)


def _rows_run_on(source: Source) -> bool:
    texts = [row["text"] for row in itertools.islice(source.reader, _SAMPLE)]
    return sum(len(split_sentences(text)) for text in texts) >= _RUNNING * len(texts)


def _neighbours(row: Row) -> Iterator[Row]:
    """The sentences of a row's text with their neighbours."""
    sentences = split_sentences(row["text"])
    for triple in zip(sentences, sentences[1:], sentences[2:], strict=False):
        yield dict(zip(("previous", "text", "next"), triple, strict=True))


class _TextFile:
    """A plain text: its sentences with their neighbours, or each alone."""

    def __init__(self, path: Path, *, running: bool) -> None:
        self._reader = TextReader(path)
        self._running = running

    @property
    def report(self) -> ReadReport:
        return self._reader.report

    def __iter__(self) -> Iterator[Row]:
        if not self._running:
            return ({"text": sentence} for sentence in self._reader.sentences())
        return (
            {"previous": each["previous"], "text": each["sentence"], "next": each["next"]}
            for each in self._reader
        )


class _Table(TableReader):
    """The rows of a table, as their task has them."""

    warns = False

    def __init__(self, path: Path, kind: TaskKind, columns: Mapping[str, str]) -> None:
        self.expects = f"rows with {', '.join(kind.needed)}"
        super().__init__(path, dict(columns), max_malformed=_MAX_MALFORMED)
        self._kind = kind

    def _examples(self, row: Row) -> list[Row]:
        return [_cleaned(row, self._kind, self.columns)]


def _cleaned(row: Mapping[str, Any], kind: TaskKind, keys: Iterable[str]) -> Row:
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
        values[key] = (value or "").strip()
        if not values[key]:
            raise MalformedRowError(f"no text in {key!r}")
    return values


def _number(value: Any, key: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise MalformedRowError(f"{key!r} is no number: {value!r:.40}") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise MalformedRowError(f"{key!r} is no finite number")
    return number


def _data_set(name: str) -> TFDSReader:
    """The reader of `NAME[SPLIT]`; of the split "train" where none is named."""
    data_set, _, split = name.removesuffix("]").partition("[")
    return TFDSReader(data_set, split=split or "train")


class _DataSet:
    """The rows of a TensorFlow data set, as their task has them."""

    def __init__(self, name: str, kind: TaskKind, columns: Mapping[str, str]) -> None:
        self._reader = _data_set(name)
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
