"""The files and rows of a user: tables, text and TensorFlow data sets, as rows of one task each."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from use_st5.data.arrays import rows_of
from use_st5.data.formats import LONGEST_ROW, format_of
from use_st5.data.reader import ReadReport
from use_st5.data.sentence_splitter import split_sentences
from use_st5.data.tables import Table, column_names, table_of
from use_st5.data.text_hashes import text_hashes
from use_st5.data.text_reader import TextReader
from use_st5.data.tfds_reader import DataSet
from use_st5.io.files import file_sha256
from use_st5.io.lines import read_lines
from use_st5.io.progress import waiting
from use_st5.io.remote_files import as_written, cached_path, remote_path
from use_st5.training.tasks import (
    NEIGHBOURS,
    SCORED_PAIRS,
    TASKS,
    TEXTS,
    TaskSpec,
    known_columns,
    task_of,
)

_TEXT = re.compile(r"\.txt(\.gz)?$", re.IGNORECASE)
_TFDS = re.compile(r"[a-z]\w*(/[\w.-]+)?(:[\d.]+)?(\[.+\])?")
Row = dict[str, Any]
Prompts = str | Mapping[str, str]

# Rows that are read to find whether a text is running text.
_SAMPLE = 200
# A text with at least this many sentences in a paragraph, on average, is running text.
_RUNNING = 2.0
# The names under which the trained model keeps the prompts of a text and of what belongs to it.
_ROLES = ("query", "document")


@dataclasses.dataclass(frozen=True)
class Source:
    """One file, or one TensorFlow data set, and its task.

    Attributes:
        name: The name as it was given; it may be remote (gs:// and the like).
        kind: Its task.
        columns: Key of a row → name of the column.
        mixing_weight: Its weight in a mixture; None: the number of its examples.
        task_given: Whether its task was given, and not found by its columns.
        prompts: Key of a row → the prompt before its text in training. The table has no prompts.
        columns_given: The keys whose columns were given, and not found by their names.
        rows_file: The file of rows in memory (`RowsFile`); None: the name is that of the file.
    """

    name: str
    kind: TaskSpec
    columns: Mapping[str, str]
    mixing_weight: float | None = None
    task_given: bool = False
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    columns_given: Sequence[str] = ()
    rows_file: Path | None = None

    @cached_property
    def path(self) -> Path:
        """The local path; a remote file is copied first. A data set has none."""
        return self.rows_file or cached_path(self.name)

    @property
    def is_text(self) -> bool:
        """Whether it is a plain text, not a table."""
        return _is_text(self.path)

    @property
    def table(self) -> pa.Table:
        """The good rows: texts and labels as strings, scores as floats. The file is read once.

        For running text the columns are "previous", "text" and "next".

        Raises:
            ValueError: Too many rows are malformed, or none is good.
        """
        return self._content[0]

    @property
    def report(self) -> ReadReport:
        """The report of the reader."""
        return self._content[1]

    def identity(self) -> str:
        """Identifies the content: the sha256 of a file, or the name of a data set."""
        return self._content[2]

    def __iter__(self) -> Iterator[Row]:
        """The rows of the table one by one."""
        return rows_of(self.table)

    @cached_property
    def hashes(self) -> dict[str, np.ndarray]:
        """Key → `text_hash` of each row's text, uint64 `[rows]`."""
        return {key: text_hashes(self.table[key]) for key in self.kind.texts if key in self.columns}

    @cached_property
    def pair_keys(self) -> np.ndarray:
        """`pair_key` of each row, int64 `[rows]`."""
        if self.kind.stands_in_for(NEIGHBOURS):
            return self.hashes["text"].view(np.int64)
        hashes = [self.hashes[key] for key in self.kind.texts if key not in self.kind.optional]
        rows = zip(*np.sort(np.stack(hashes), axis=0).tolist(), strict=True)
        return np.fromiter(map(hash, rows), np.int64, self.table.num_rows)

    @cached_property
    def _content(self) -> tuple[pa.Table, ReadReport, str]:
        """The table, the report and the identity."""
        running = self.kind.stands_in_for(NEIGHBOURS)
        columns = ("previous", "text", "next") if running else (*self.columns,)
        with waiting(f"reading {Path(self.name).name}"):
            if self.is_text:
                reader = TextReader(self.path)
                triples = ((each["previous"], each["sentence"], each["next"]) for each in reader)
                texts = triples if running else ((each,) for each in reader.sentences())
                rows = (dict(zip(columns, each, strict=True)) for each in texts)
                return table_of(rows, columns), reader.report, file_sha256(self.path)
            file = self._file()
            table = file.read()
            if running:
                neighbours = itertools.chain.from_iterable(map(_neighbours, rows_of(table)))
                table = table_of(neighbours, columns)
            return table, file.report, file.sha256 if isinstance(file, Table) else self.name

    def _file(self) -> Table | DataSet:
        """The reader of the source, if it is a table or a data set."""
        kind = self.kind
        if self.path.exists():
            return Table(self.path, self.columns, label=kind.label, score=kind.score)
        return DataSet(self.name, self.columns, label=kind.label, score=kind.score)

    def is_running_text(self) -> bool:
        """Whether the first texts of a table hold several sentences each."""
        texts = [row["text"] for row in itertools.islice(self._file(), _SAMPLE)]
        return sum(len(split_sentences(text)) for text in texts) >= _RUNNING * len(texts)


def open_sources(
    files: Sequence[str | os.PathLike[str]],
    validation: Sequence[str | os.PathLike[str]],
    test: Sequence[str | os.PathLike[str]],
    *,
    task: str | Mapping[str, str] | None,
    columns: Mapping[str, str] | None,
    tasks: Sequence[TaskSpec],
    prompts: Prompts,
) -> tuple[list[Source], list[Source], list[Source]]:
    """The training, validation and test files, each with its task; the arguments are `train`'s."""
    names = [split_weight(each)[0] for each in files]
    if isinstance(task, Mapping) and (unknown_names := set(task) - set(names)):
        raise ValueError(
            f"task: expected names among the training files, {', '.join(names)}; received "
            f"{', '.join(sorted(unknown_names))}."
        )
    if not files:
        raise ValueError("Expected at least one training file, received none.")
    known_tasks = TASKS | {spec.name: spec for spec in tasks}
    options: dict[str, Any] = {"columns": columns, "tasks": known_tasks, "prompts": prompts}
    sources = [open_source(each, task=task, **options) for each in files]
    check_prompts(prompts, sources)
    if not isinstance(prompts, str):
        # The other files may have other names for the same columns.
        key_prompts = {key: text for source in sources for key, text in source.prompts.items()}
        options["prompts"] = key_prompts | dict(prompts)

    def open_evaluation(given: str | os.PathLike[str]) -> Source:
        try:
            source = open_source(given, task=task, **options)
        except ValueError:  # The given task does not fit: its columns decide.
            source = open_source(given, **options)
        if source.kind.metric is None:
            score = " or ".join(SCORED_PAIRS.columns["score"])
            raise ValueError(
                f"{source.name}: expected a file that can evaluate, received {source.kind.name}. "
                f"Add a column {score} to the pairs."
            )
        return source

    evaluation = [[*map(open_evaluation, file_list)] for file_list in (validation, test)]
    _check_columns(columns or {}, [*sources, *evaluation[0], *evaluation[1]])
    return sources, evaluation[0], evaluation[1]


def open_source(
    given: str | os.PathLike[str],
    *,
    task: str | Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    tasks: Mapping[str, TaskSpec] = TASKS,
    prompts: Prompts = "",
) -> Source:
    """Opens a file, and finds its task by its columns.

    Args:
        given: A file, or the name of a TensorFlow data set, `NAME[SPLIT]`; `=WEIGHT` may follow.
        task: The name of its task, or names of tasks by file; None: its columns decide.
        columns: Key, such as "anchor" → the file's own name for that column.
        tasks: The known tasks by name.
        prompts: One prompt for all texts, or prompts by column.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is empty or has no known format, or no task fits its columns.
    """
    name, weight = split_weight(given)
    task = task.get(name) if isinstance(task, Mapping) else task
    name = as_written(name)
    rows_file = given.path if isinstance(given, RowsFile) else None
    path = rows_file or cached_path(name)
    if is_text := _is_text(path):
        running = _runs_on(TextReader(path))
        names = {"text": "text"}
        kind = task_of(["text"], name, task or (NEIGHBOURS if running else TEXTS).name, tasks)
    else:
        names = _renamed(_column_names(name, path), columns or {})
        kind = task_of([*names], name, task, tasks)
    names_given = () if is_text else {*map(_folded, (columns or {}).values())}

    def source_of(kind: TaskSpec) -> Source:
        own_columns = {key: names[each] for key, each in kind.found_in([*names]).items()}
        own_prompts = prompts_by_key(prompts, kind, own_columns)
        keys_given = [key for key, each in own_columns.items() if _folded(each) in names_given]
        task_given = task is not None
        return Source(
            name, kind, own_columns, weight, task_given, own_prompts, keys_given, rows_file
        )

    source = source_of(kind)
    if (
        is_text
        or task is not None
        or not kind.stands_in_for(NEIGHBOURS)
        or source.is_running_text()
    ):
        return source
    return source_of(task_of([*names], name, TEXTS.name, tasks))


@dataclasses.dataclass(frozen=True)
class RowsFile(os.PathLike[str]):
    """Rows in memory, in a file that is read like a user's own.

    Attributes:
        name: A name for logs, cards and results.
        path: The file.
    """

    name: str
    path: Path

    def __fspath__(self) -> str:
        return self.name


@contextlib.contextmanager
def rows_as_files(**given: Any) -> Iterator[list[list[str | os.PathLike[str]]]]:
    """The files of each argument as a list, in which files replace rows while the block runs.

    Args:
        **given: By the name of the argument: a file, rows, or a list of files and of rows.

    Raises:
        ValueError: A column of the rows has values that do not fit each other.
    """
    with tempfile.TemporaryDirectory() as folder:
        lists: list[list[str | os.PathLike[str]]] = []
        for argument, value in given.items():
            # A list of rows, and what is no list, is one set.
            one = isinstance(value, str | os.PathLike) or not isinstance(value, Sequence)
            is_rows = not one and len(value) > 0 and all(isinstance(row, Mapping) for row in value)
            files, number = [], 0
            for file in [value] if one or is_rows else value:
                if not isinstance(file, str | os.PathLike):
                    number += 1
                    name = "rows" if argument == "files" else f"{argument}_rows"
                    name += f"_{number}" * (number > 1)
                    rows_file = RowsFile(name, Path(folder, f"{name}.parquet"))
                    parquet.write_table(_rows_table(file, argument), rows_file.path)
                    file = rows_file
                files.append(file)
            lists.append(files)
        yield lists


def _rows_table(rows: Any, argument: str) -> pa.Table:
    """A DataFrame, an Arrow table, or rows by name of the column, as an Arrow table."""
    try:
        if hasattr(rows, "__arrow_c_stream__") or type(rows).__name__ == "DataFrame":
            return pa.table(rows).replace_schema_metadata()
        rows = [*rows_of(rows)]
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: [row.get(name) for row in rows] for name in names})
    except (AttributeError, TypeError, ValueError) as error:  # Arrow's errors are among them.
        raise ValueError(
            f"{argument}: expected rows, each a mapping from names of columns to texts, numbers "
            f"or labels, received others ({error!s:.200}). Give a DataFrame, an Arrow table, a "
            "list of dicts, a tf.data.Dataset, or the name of a file."
        ) from error


def _check_columns(columns: Mapping[str, str], sources: Sequence[Source]) -> None:
    """Refuses a key, or a name of a column, that no file uses."""
    used = {_folded(source.columns[key]) for source in sources for key in source.columns_given}
    unused = [(key, name) for key, name in columns.items() if _folded(name) not in used]
    if not unused:
        return
    key, name = unused[0]
    tables = [source for source in sources if not source.is_text]
    names = [each for table in tables for each in _column_names(table.name, table.path)]
    if _folded(name) not in map(_folded, names):
        raise ValueError(
            f"columns: expected names of columns, found {', '.join(dict.fromkeys(names))}; "
            f"received {name!r} for {key}."
        )
    kinds = {table.kind.name: table.kind for table in tables}
    raise ValueError(
        f"columns: expected a key of the files' tasks, {known_columns(kinds)}; received {key!r} "
        f"for the column {name!r}."
    )


def _folded(name: str) -> str:
    return name.strip().casefold()


def _renamed(names: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The key or name that a column is used as → its name in the file; keys come first."""
    keys_by_name = {_folded(column): key for key, column in columns.items()}
    keyed_names: dict[str, str] = {}
    other_names: dict[str, str] = {}
    for name in names:
        key = keys_by_name.get(_folded(name))
        if key is None:
            other_names[name] = name
        else:
            keyed_names.setdefault(key, name)
    return keyed_names | {name: name for name in other_names if name not in keyed_names}


def _is_text(path: Path) -> bool:
    """Whether a file is a plain text: some tables are called .txt too, but have tabs."""
    return bool(_TEXT.search(path.name)) and b"\t" not in _first_line(path)


def _first_line(path: Path) -> bytes:
    lines = read_lines(path, longest=LONGEST_ROW, skip_long=True)
    return next((line for _, line in lines), b"")


def split_weight(given: str | os.PathLike[str]) -> tuple[str, float | None]:
    """Splits `given` into the name and the weight after `=`, which is None if there is none."""
    given = os.fspath(given)
    name, equals, weight = given.rpartition("=")
    if not equals or (not remote_path(given) and Path(given).exists()):
        return given, None
    try:
        value = float(weight)
    except ValueError:
        return given, None
    if not 0 < value < float("inf"):
        raise ValueError(f"{given}: expected a weight above 0 after '=', received {weight}.")
    return name, value


def _column_names(name: str, path: Path) -> list[str]:
    """The names of the columns of a table or a data set, which has no path."""
    if not path.exists():
        if path.suffix or not _TFDS.fullmatch(name):
            raise FileNotFoundError(
                f"{name}: expected a file (.tsv, .csv, .jsonl, .parquet, .txt) or the name of a "
                "TensorFlow data set, found neither."
            )
        return [*DataSet(name).columns]
    if format_of(path) == "jsonl" and _first_line(path).lstrip().startswith(b"["):
        raise ValueError(
            f"{name}: expected a JSON object in each line, found a JSON array. In Python, give its "
            "rows: train(…, json.load(open(FILE))); or write each object into a line of its own."
        )
    return column_names(path, where=name)


def _runs_on(reader: TextReader) -> bool:
    """Whether the paragraphs of a file have several sentences on average, not only one."""
    sentences = sum(1 for _ in itertools.islice(reader.sentences(), _SAMPLE * 10))
    return sentences >= _RUNNING * max(1, reader.report.rows)


def _neighbours(row: Row) -> Iterator[Row]:
    """The sentences of a row's text, each with the one before and the one after it."""
    sentences = split_sentences(row["text"])
    for triple in zip(sentences, sentences[1:], sentences[2:], strict=False):
        yield dict(zip(("previous", "text", "next"), triple, strict=True))


def prompts_by_key(given: Prompts, kind: TaskSpec, columns: Mapping[str, str]) -> dict[str, str]:
    """The prompts of a row's texts, by key; `given` has keys or the file's own column names."""
    keys = [key for key in kind.texts if key in columns]
    if isinstance(given, str):
        prompts = dict.fromkeys(keys, given)
    else:
        prompts = {key: given.get(key, given.get(columns[key], "")) for key in keys}
    return {key: prompt for key, prompt in prompts.items() if prompt}


def check_prompts(given: Prompts, sources: Sequence[Source]) -> None:
    """Refuses prompts for columns that no training file has."""
    names = dict.fromkeys(
        name
        for source in sources
        for key in source.kind.texts
        if key in source.columns
        for name in (key, source.columns[key])
    )
    if not isinstance(given, str) and (unknown := [name for name in given if name not in names]):
        raise ValueError(
            f"prompts: expected columns of the training files that hold texts, {', '.join(names)}; "
            f"received {', '.join(unknown)}."
        )


def exported_prompts(sources: Sequence[Source]) -> tuple[dict[str, str], str | None]:
    """The prompts that the trained model keeps, by name, and the name of its default prompt.

    If all texts have the same prompt, it is the prompt of queries and documents, and the default.
    Otherwise the prompt of the query text has the name "query", that of its answer the name
    "document", and that of another text the name of its key.

    Args:
        sources: The training files. If two have different prompts of one name, the first counts.
    """
    texts = [
        (source.kind, key, source.prompts.get(key, ""))
        for source in sources
        for key in source.kind.texts
        if key in source.columns
    ]
    distinct_prompts = {prompt for _, _, prompt in texts}
    if distinct_prompts == {""}:
        return {}, None
    if len(distinct_prompts) == 1:
        return dict.fromkeys(_ROLES, distinct_prompts.pop()), "query"
    named_prompts: dict[str, str] = {}
    for kind, key, prompt in texts:
        needed = [each for each in kind.needed if each in kind.texts]
        name = key
        if len(needed) > 1 and kind.metric and kind.metric.query == needed[0]:
            name = dict(zip(needed, _ROLES, strict=False)).get(key, key)
        named_prompts.setdefault(name, prompt)
    return {name: text for name, text in named_prompts.items() if text or name in _ROLES}, None
