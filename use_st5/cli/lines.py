"""Reading texts, one a line, from a file or from standard input."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from use_st5._files import space_for
from use_st5._lines import decode_line, numbered
from use_st5.cli.elsewhere import fetched
from use_st5.cli.output import say

STDIN = "-"


@dataclass(frozen=True)
class Survey:
    """What one pass over the input tells: `sha256` of its bytes and the number of `lines`."""

    sha256: str
    lines: int


def read_lines(stream: Iterable[bytes], *, source: str) -> Iterator[str]:
    """Yields the lines of a UTF-8 `stream`, without their ends, empty ones included.

    Raises:
        ValueError: if a line is not UTF-8; names `source` and the line.
    """
    for number, line in numbered(stream):
        yield decode_line(line, where=f"{source}, line {number}")


@contextmanager
def open_input(name: str) -> Iterator[IO[bytes]]:
    """Opens a text file, or standard input for `-`, for reading bytes.

    A pipe may be given by its path, too: `/dev/stdin`, `/dev/fd/N`, a shell's `<(…)`. A file
    elsewhere (gs:// and the like) is copied first.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    if name == STDIN:
        if sys.stdin.isatty():
            say("reading texts from the keyboard, one a line; Ctrl-D ends")
        yield sys.stdin.buffer
        return
    path = fetched(name)
    if not path.exists() or path.is_dir():
        raise FileNotFoundError(f"expected a text file (or - for standard input), found no {name}")
    with path.open("rb") as stream:
        yield stream


@contextmanager
def open_seekable(name: str, *, beside: Path) -> Iterator[IO[bytes]]:
    """Like `open_input`, but what comes through a pipe is first copied to a nameless file.

    Args:
        name: a file, or `-`.
        beside: the copy lies in this file's folder, which will hold something of its size anyway.
    """
    with open_input(name) as stream:
        if stream.seekable():
            yield stream
            return
        with space_for(beside), tempfile.TemporaryFile(dir=beside.parent) as copy:
            shutil.copyfileobj(stream, copy)
            copy.seek(0)
            yield copy


def survey(stream: IO[bytes], *, source: str) -> Survey:
    """Reads a seekable `stream` once, to its end, and rewinds it.

    Raises:
        ValueError: if a line is not UTF-8.
    """
    digest = hashlib.sha256()
    lines = 0

    def hashed() -> Iterator[bytes]:
        for line in stream:
            digest.update(line)
            yield line

    for _ in read_lines(hashed(), source=source):
        lines += 1
    stream.seek(0)
    return Survey(digest.hexdigest(), lines)
