"""Lines of text files: gzip, byte order marks, CRLF, broken UTF-8."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from use_st5.io.remote_files import cached_path

_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# The first bytes of a file tell its format. UTF-16 without a mark has a NUL byte in each ASCII
# letter, space and line feed: always the first or always the second byte.
_START, _FEWEST_NULS = 4096, 0.005
# The longest lines, in bytes, so that a file without line feeds is refused before all of it is in
# memory. Corpora have a document in a line; evaluation data has a sentence or two.
_LONGEST_DOCUMENT = 2**26
_LONGEST_SENTENCE = 1_000_000
# For a line that is too long: the bytes that are read at once to reach its end, and the bytes kept.
_SKIPPED, LONG_LINE = 2**20, 2**16


# The errors that `gzip` raises for a damaged file.
GZIP_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class LongLine(bytes):
    """The start of a line that is too long to be read whole."""


def unpacked(file: Any, *, where: str) -> Any:
    """Returns an open file, or its content if it is compressed by gzip.

    Its first bytes tell. They are read again later: the file has `peek`, or it can be rewound.

    Raises:
        ValueError: It is UTF-16, or a damaged gzip file.
    """
    if (start := _start_of(file)).startswith(_GZIP):
        file = gzip.GzipFile(fileobj=file)
        try:
            start = _start_of(file)
        except GZIP_DAMAGE as error:
            raise damaged_gzip(where, 0, error) from error
    if encoding := "UTF-16" if start[:2] in _UTF16_MARKS else _utf16_without_mark(start):
        raise ValueError(
            f"{where}: expected UTF-8 text, received UTF-16. "
            f"Convert it first, for example: iconv -f {encoding} -t UTF-8 '{where}'"
        )
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


def _utf16_without_mark(start: bytes) -> str:
    """Returns the name of the encoding if the first bytes of a file are UTF-16, else ""."""
    first_nuls, second_nuls = start[::2].count(0), start[1::2].count(0)
    if len(start) % 2 or (first_nuls and second_nuls):
        return ""
    if first_nuls + second_nuls < max(2, _FEWEST_NULS * len(start)):
        return ""
    return "UTF-16BE" if first_nuls else "UTF-16LE"


def check_file(path: Path) -> None:
    """Raises FileNotFoundError or ValueError unless `path` is a file."""
    if path.is_dir():
        raise ValueError(f"{path}: expected a file, received a folder. Name the files in it.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a file, found none.")


def numbered(lines: Iterable[bytes], *, where: str) -> Iterator[tuple[int, bytes]]:
    r"""Line numbers from 1 and lines without byte order mark, line feed and carriage return.

    Lines end at `\n` alone: `str.splitlines` would also break at U+0085 and U+2028, which occur
    inside sentences of real files.

    Raises:
        ValueError: The lines end at carriage returns.
    """
    for number, line in enumerate(lines, start=1):
        if isinstance(line, LongLine):
            yield number, line
            continue
        if number == 1:
            line = line.removeprefix(_UTF8_MARK)
            check_line_feed(line, where=where)
        yield number, line.rstrip(b"\r\n")


def check_line_feed(line: bytes, *, where: str) -> None:
    """Refuses a first line that is the whole file and has carriage returns between its texts.

    Raises:
        ValueError: It is such a line.
    """
    if not line.endswith(b"\n") and b"\r" in line.rstrip(b"\r"):
        raise ValueError(
            f"{where}: expected lines that end in a line feed, received one line with carriage "
            f"returns. Convert it first, for example: tr '\\r' '\\n' < '{where}'"
        )


def decode_line(line: bytes, encoding: str = "utf-8", *, where: str) -> str:
    """A line as text.

    Args:
        line: Its bytes.
        encoding: Name of a codec.
        where: What errors call the line.

    Raises:
        ValueError: It is not in the encoding.
    """
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: expected {encoding.upper()} text, received the byte "
            f"0x{line[error.start]:02x} at position {error.start} of the line. Convert the file "
            "first, for example with iconv."
        ) from error


def read_text(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and the lines of a file that is text throughout, decoded.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: As in `read_lines`, or a line is not in the encoding, holds a NUL byte, or is
            longer than any sentence.
    """
    for number, line in read_lines(path, longest=_LONGEST_SENTENCE):
        if b"\0" in line:
            raise ValueError(
                f"{path}:{number}: expected a line of text, received a NUL byte. "
                "Download the file again."
            )
        yield number, decode_line(line, encoding, where=f"{path}:{number}")


def read_lines(
    path: Path, *, longest: int = _LONGEST_DOCUMENT, skip_long: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Line numbers and lines as `numbered` gives them, of a plain or gzip-compressed file.

    Args:
        path: The file.
        longest: Lines with more bytes are refused.
        skip_long: Whether a longer line is given as a `LongLine` instead, and the lines after it
            are read.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: It is a folder, UTF-16, or a damaged gzip file; or a line is too long.
    """
    check_file(path)
    with path.open("rb") as file:
        yield from lines_of(file, where=str(path), longest=longest, skip_long=skip_long)


def lines_of(
    file: BinaryIO, *, where: str, longest: int = _LONGEST_DOCUMENT, skip_long: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Does the same for an open file that can be rewound; errors call it `where`."""
    content = unpacked(file, where=where)
    number = 0
    try:
        lines = bounded_lines(content, where, longest, skip_long)
        for number, line in numbered(lines, where=where):
            yield number, line
    except GZIP_DAMAGE as error:
        raise damaged_gzip(where, number, error) from error


def damaged_gzip(where: str, number: int, error: Exception) -> ValueError:
    """Returns the error for a damaged file after the first `number` lines were read."""
    return ValueError(
        f"{where}: expected a complete gzip file, found damage after line {number} ({error}). "
        "Download it again."
    )


def bounded_lines(file: BinaryIO, where: str, longest: int, skip_long: bool) -> Iterator[bytes]:
    """Yields the lines of an open file with line feeds; treats long lines as `read_lines` does."""
    for number, line in enumerate(iter(lambda: file.readline(longest + 1), b""), start=1):
        if len(line) > longest:
            if not skip_long:
                raise ValueError(
                    f"{where}:{number}: expected a line of text, received a line of more than "
                    f"{longest:,} bytes. Download the file again."
                )
            line = skipped(file, line)
        yield line


def skipped(file: BinaryIO, start: bytes) -> LongLine:
    """Reads to the end of a line that is too long, and returns its start."""
    rest = start
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(_SKIPPED)
    return LongLine(start[:LONG_LINE])


def as_paths(path: str | Path | list[str] | list[Path]) -> list[Path]:
    """Returns one path or a list of paths as a list of local files; checks that each is a file."""
    paths = [cached_path(each) for each in ([path] if isinstance(path, str | Path) else path)]
    if not paths:
        raise ValueError("Expected at least one file, received an empty list.")
    for each in paths:
        check_file(each)
    return paths
