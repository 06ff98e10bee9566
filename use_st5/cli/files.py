"""The files that a command reads and writes, local or remote."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from use_st5.cli.models import start_tensorflow
from use_st5.cli.output import say, waiting
from use_st5.hub.model_manifest import check_replaceable
from use_st5.io.files import as_written, cached_path, exists, remote_path, sole_writer
from use_st5.io.lines import decoded_lines

if TYPE_CHECKING:
    import pyarrow as pa

STDIN = "-"
_TABLE = re.compile(r"\.(csv|tsv|jsonl|ndjson|json|parquet)(\.gz)?$", re.IGNORECASE)

ColumnOption = Annotated[
    str | None,
    typer.Option("--column", help="For a .csv, .tsv, .jsonl or .parquet: the column of the texts."),
]


def local_copy(path: str | os.PathLike[str]) -> Path:
    """The path of a local copy of a remote file or folder; a local path is returned as it is."""
    remote = remote_path(path)
    if remote is None:
        return Path(path)
    start_tensorflow()
    with waiting(f"downloading {remote}"):
        return cached_path(remote)


def writes_remote(path: Path, *, allowed: bool) -> bool:
    """Whether the path that a command writes is remote, which not all commands allow."""
    remote = remote_path(path)
    if remote is None:
        return False
    if not allowed:
        raise ValueError(f"{remote}: expected a local path. Write to one, then copy it.")
    start_tensorflow()
    return True


class _Lines:
    """The lines of a stream; of one that can be rewound, any number of times."""

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self._stream, self._source, self._is_read = stream, source, False

    def __iter__(self) -> Iterator[str]:
        if self._is_read:
            self._stream.seek(0)
        self._is_read = True
        return (line for _, line in decoded_lines(self._stream, where=self._source))


class _Column:
    """The texts of a column of a table, one for each row; they may be empty."""

    def __init__(self, source: str, column: str | None) -> None:
        from use_st5.data.tables import TableReader

        if source == STDIN:
            raise ValueError("--column expects a file, not standard input.")
        path = local_copy(source)
        column = _checked_column(path, source, column)
        self._source, self._column, self._is_read = source, column, False
        self._reader = TableReader(path, {column: column}, optional=(column,), strict=True)

    def __iter__(self) -> Iterator[str]:
        for row in self._reader:
            yield row[self._column]
        if not self._is_read:
            for note, count in self._reader.report.notes.items():
                say(f"{self._source}: {note}: {count:,}")
        self._is_read = True


def _checked_column(path: Path, source: str, column: str | None) -> str:
    from use_st5.data.tables import column_names

    names = column_names(path, where=source)
    if column is None or column.strip().casefold() not in map(str.casefold, names):
        listed = ", ".join(map(repr, names))
        raise ValueError(
            f"{source}: give --column with the column of the texts, one of {listed:.200} "
            "(or rename the file to .txt, if each line is a text)"
        )
    return column


def read_rows(source: str, column: str | None) -> tuple[list[str], pa.Table | None]:
    """The texts of an input, and the other columns if it is a table.

    With `column`, standard input is a table with tabs, as `use-st5 search` writes it in a pipe.
    """
    if column is None and not _TABLE.search(source):
        with open_texts(source) as lines:
            return list(lines), None
    from use_st5.data.tables import RowReader

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stdin.tsv")
        if source == STDIN:
            with open_input(source) as stream, path.open("wb") as copy:
                shutil.copyfileobj(stream, copy)
        else:
            path = local_copy(source)
        reader = RowReader(path, _checked_column(path, source, column))
        rows = reader.read()
    for note, count in reader.report.notes.items():
        say(f"{source}: {note}: {count:,}")
    return rows


@contextmanager
def open_texts(
    source: str, *, column: str | None = None, beside: Path | None = None
) -> Iterator[Iterable[str]]:
    """Gives the texts of an input: its lines, or those of a column if it is a table.

    With `beside`, as for `open_input`, the texts can be read more than once.
    """
    if column is not None or _TABLE.search(source):
        yield _Column(source, column)
        return
    with open_input(source, beside=beside) as stream:
        yield _Lines(stream, source)


@contextmanager
def open_input(name: str, *, beside: Path | None = None) -> Iterator[IO[bytes]]:
    """Opens a text file, or standard input for `-`, for reading bytes.

    A pipe may be given by its path, too: `/dev/stdin`, `/dev/fd/N`, a shell's `<(…)`. A remote
    file is downloaded first. With `beside`, the stream can be rewound to where it begins: what
    cannot be is copied to a file without a name in the folder of `beside`.
    """
    with contextlib.ExitStack() as stack:
        if name == STDIN:
            if sys.stdin.isatty():
                say("reading texts from the keyboard, one a line; end with Ctrl-D")
            stream: IO[bytes] = sys.stdin.buffer
        else:
            path = local_copy(name)
            if not path.exists() or path.is_dir():
                raise FileNotFoundError(f"{name}: expected a text file, found none")
            stream = stack.enter_context(path.open("rb"))
        if beside is not None and not (stream.seekable() and stream.tell() == 0):
            copy = stack.enter_context(tempfile.TemporaryFile(dir=beside.parent))
            shutil.copyfileobj(stream, copy)
            copy.seek(0)
            stream = copy
        yield stream


@contextlib.contextmanager
def sole_file(
    path: Path, *, overwrite: bool = True, remote: bool = False, inputs: Iterable[str] = ()
) -> Iterator[None]:
    """Lets only this process write the file `path`, which is none of `inputs`, in the block."""
    if not writes_remote(path, allowed=remote) and path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: expected a file to write, found something else")
    for name in inputs:
        if path.exists() and Path(name).exists() and path.samefile(name):
            raise FileExistsError(f"{path}: expected another file than the input")
    with sole_writer(path):
        check_new(path, overwrite=overwrite)
        yield


@contextlib.contextmanager
def sole_model(
    folder: Path,
    *,
    overwrite: bool,
    remote: bool = True,
    check: Callable[[Path], None] = check_replaceable,
) -> Iterator[None]:
    """Lets only this process write `folder`, which becomes a model, while the block runs.

    `check` refuses a folder with other files than a model.
    """
    writes_remote(folder, allowed=remote)
    with sole_writer(folder):
        check(folder)
        check_new(folder, overwrite=overwrite)
        yield


def check_new(path: Path, *, overwrite: bool) -> None:
    """Checks that a path does not exist, unless `overwrite` allows to replace it."""
    if exists(path) and not overwrite:
        raise FileExistsError(f"{as_written(path)} exists; give --overwrite or choose another name")
