"""Streams: lines of text files (gzip, UTF-8, CRLF), lists of items, work in threads."""

from __future__ import annotations

import gzip
import itertools
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from use_st5.io.files import cached_path

Item = TypeVar("Item")
Result = TypeVar("Result")

_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# The first bytes of a file tell its format. UTF-16 without a mark has a NUL byte in each ASCII
# letter, space and line feed: always the first or always the second byte.
_START = 4096
# The longest lines, in bytes, so that a file without line feeds is refused before all of it is in
# memory. Corpora have a document in a line; evaluation data has a sentence or two.
_LONGEST_DOCUMENT = 2**26
_LONGEST_SENTENCE = 1_000_000
# For a line that is too long: the bytes that are read at once to reach its end, and the bytes kept.
_SKIPPED, _KEPT = 2**20, 2**16

# The errors that `gzip` raises for a damaged file.
GZIP_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class LongLine(bytes):
    """The start of a line that is too long to be read whole."""


def unpacked(file: Any, *, where: str) -> Any:
    """Returns an open file, or its content if it is compressed by gzip; refuses UTF-16.

    Its first bytes tell. They are read again later: the file has `peek`, or it can be rewound.
    """
    if (start := _start_of(file)).startswith(_GZIP):
        file = gzip.GzipFile(fileobj=file)
        try:
            start = _start_of(file)
        except GZIP_DAMAGE as error:
            raise ValueError(f"{where}: expected a complete gzip file ({error}).") from error
    big, little = start[::2].count(0), start[1::2].count(0)
    if start[:2] in _UTF16_MARKS or abs(big - little) > max(1, len(start) // 16):
        encoding = "UTF-16BE" if start[:2] == _UTF16_MARKS[1] or big > little else "UTF-16LE"
        remedy = f"iconv -f {encoding} -t UTF-8 '{where}'"
        raise ValueError(f"{where}: expected UTF-8, received UTF-16. Convert it first: {remedy}")
    return file


def is_gzip(file: Any) -> bool:
    """Whether a file is compressed by gzip; its position stays."""
    return _start_of(file).startswith(_GZIP)


def _start_of(file: Any) -> bytes:
    if hasattr(file, "peek"):  # A pipe cannot be rewound.
        return file.peek(_START)[:_START]
    place = file.tell()
    start = file.read(_START)
    file.seek(place)
    return start


def check_file(path: Path) -> None:
    """Checks that `path` is a file."""
    if path.is_dir():
        raise ValueError(f"{path}: expected a file, received a folder. Name the files in it.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a file, found none.")


def decoded_lines(
    file: Any, encoding: str = "utf-8", *, where: str, longest: int = _LONGEST_DOCUMENT
) -> Iterator[tuple[int, str]]:
    """Line numbers and lines as `lines_of` gives them, as text; a ValueError if one is none."""
    for number, line in lines_of(file, where=where, longest=longest):
        try:
            yield number, line.decode(encoding)
        except UnicodeDecodeError as error:
            byte, place = f"0x{line[error.start]:02x}", f"{where}:{number}"
            raise ValueError(f"{place}: expected {encoding.upper()}, received {byte}.") from error


def read_text(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and the lines of a file of sentences, decoded."""
    check_file(path)
    with path.open("rb") as file:
        lines = decoded_lines(file, encoding, where=str(path), longest=_LONGEST_SENTENCE)
        for number, line in lines:
            if "\0" in line:
                raise ValueError(f"{path}:{number}: expected a line of text, received a NUL byte.")
            yield number, line


def read_lines(
    path: Path, *, longest: int = _LONGEST_DOCUMENT, skip_long: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Line numbers and lines as `lines_of` gives them, of a file on the disk."""
    check_file(path)
    with path.open("rb") as file:
        yield from lines_of(file, where=str(path), longest=longest, skip_long=skip_long)


def lines_of(
    file: Any, *, where: str, longest: int = _LONGEST_DOCUMENT, skip_long: bool = False
) -> Iterator[tuple[int, bytes]]:
    r"""Line numbers from 1 and lines without byte order mark, line feed and carriage return.

    Lines end at `\n` alone: `str.splitlines` would also break at U+0085 and U+2028, which occur
    inside sentences of real files.

    Lines of more than `longest` bytes are refused, or with `skip_long` given as a `LongLine`.
    """
    content, number = unpacked(file, where=where), 0
    try:
        for number, line in enumerate(iter(lambda: content.readline(longest + 1), b""), start=1):
            if number == 1:
                line = line.removeprefix(_UTF8_MARK)
                if not line.endswith(b"\n") and b"\r" in line.rstrip(b"\r"):
                    remedy = f"tr '\\r' '\\n' < '{where}'"
                    raise ValueError(f"{where}: expected lines that end in a line feed: {remedy}")
            if len(line) <= longest:
                yield number, line.rstrip(b"\r\n")
            elif skip_long:
                rest = line
                while rest and not rest.endswith(b"\n"):
                    rest = content.readline(_SKIPPED)
                yield number, LongLine(line[:_KEPT])
            else:
                raise ValueError(f"{where}:{number}: a line of more than {longest:,} bytes.")
    except GZIP_DAMAGE as error:
        said = f"found damage after line {number} ({error})"
        raise ValueError(f"{where}: expected a complete gzip file, {said}.") from error


def as_paths(path: str | Path | list[str] | list[Path]) -> list[Path]:
    """Returns one path or a list of paths as a list of local files; checks that each is a file."""
    paths = [cached_path(each) for each in ([path] if isinstance(path, str | Path) else path)]
    if not paths:
        raise ValueError("Expected at least one file, received an empty list.")
    for each in paths:
        check_file(each)
    return paths


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a stream into lists of `size` items; the last list may be shorter."""
    stream = iter(items)
    while batch := list(itertools.islice(stream, size)):
        yield batch


def in_chunks(
    items: Iterable[Item], *, rows: int, characters: int, length: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Cuts a stream of texts into lists that one call of an encoder gets.

    A list has at most `rows` items, and ends when their `length` reaches `characters`.
    """
    chunk: list[Item] = []
    total = 0
    for item in items:
        chunk.append(item)
        total += length(item)
        if len(chunk) == rows or total >= characters:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yields what a function returns for each item, in their order, computed by several threads.

    No more items are read ahead than there are threads, one for each processor.
    """
    threads = os.cpu_count() or 1
    results: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            results.append(pool.submit(function, item))
            if len(results) > threads:
                yield results.popleft().result()
        while results:
            yield results.popleft().result()
