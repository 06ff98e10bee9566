"""Lines of text files: gzip, byte order marks, CRLF, broken UTF-8."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
_SKIPPED, _KEPT = 2**20, 2**16

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
            raise _damaged_gzip(where, 0, error) from error
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


def decoded_lines(
    file: Any, encoding: str = "utf-8", *, where: str, longest: int = _LONGEST_DOCUMENT
) -> Iterator[tuple[int, str]]:
    """Line numbers and lines as `lines_of` gives them, as text; a ValueError if one is none."""
    for number, line in lines_of(file, where=where, longest=longest):
        try:
            yield number, line.decode(encoding)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{where}:{number}: expected {encoding.upper()} text, received the byte "
                f"0x{line[error.start]:02x} at position {error.start} of the line. Convert the "
                "file first, for example with iconv."
            ) from error


def read_text(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and the lines of a file that is text throughout, decoded.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: As in `read_lines`, or a line is not in the encoding, holds a NUL byte, or is
            longer than any sentence.
    """
    check_file(path)
    with path.open("rb") as file:
        lines = decoded_lines(file, encoding, where=str(path), longest=_LONGEST_SENTENCE)
        for number, line in lines:
            if "\0" in line:
                raise ValueError(
                    f"{path}:{number}: expected a line of text, received a NUL byte. "
                    "Download the file again."
                )
            yield number, line


def read_lines(
    path: Path, *, longest: int = _LONGEST_DOCUMENT, skip_long: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Line numbers and lines as `lines_of` gives them, of a file on the disk.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: It is a folder, or as in `lines_of`.
    """
    check_file(path)
    with path.open("rb") as file:
        yield from lines_of(file, where=str(path), longest=longest, skip_long=skip_long)


def lines_of(
    file: Any, *, where: str, longest: int = _LONGEST_DOCUMENT, skip_long: bool = False
) -> Iterator[tuple[int, bytes]]:
    r"""Line numbers from 1 and lines without byte order mark, line feed and carriage return.

    Lines end at `\n` alone: `str.splitlines` would also break at U+0085 and U+2028, which occur
    inside sentences of real files.

    Args:
        file: An open file, plain or compressed by gzip, with `peek` or one that can be rewound.
        where: What errors call it.
        longest: Lines with more bytes are refused.
        skip_long: Whether a longer line is given as a `LongLine` instead, and the lines after it
            are read.

    Raises:
        ValueError: It is UTF-16, a damaged gzip file, or text whose lines end at carriage returns;
            or a line is too long.
    """
    content, number = unpacked(file, where=where), 0
    try:
        for number, line in enumerate(iter(lambda: content.readline(longest + 1), b""), start=1):
            if number == 1:
                line = line.removeprefix(_UTF8_MARK)
                if not line.endswith(b"\n") and b"\r" in line.rstrip(b"\r"):
                    raise ValueError(
                        f"{where}: expected lines that end in a line feed, received one line with "
                        "carriage returns. Convert it first, for example: tr '\\r' '\\n' < "
                        f"'{where}'"
                    )
            if len(line) <= longest:
                yield number, line.rstrip(b"\r\n")
            elif skip_long:
                rest = line
                while rest and not rest.endswith(b"\n"):
                    rest = content.readline(_SKIPPED)
                yield number, LongLine(line[:_KEPT])
            else:
                raise ValueError(
                    f"{where}:{number}: expected a line of text, received a line of more than "
                    f"{longest:,} bytes. Download the file again."
                )
    except GZIP_DAMAGE as error:
        raise _damaged_gzip(where, number, error) from error


def _damaged_gzip(where: str, number: int, error: Exception) -> ValueError:
    return ValueError(
        f"{where}: expected a complete gzip file, found damage after line {number} ({error}). "
        "Download it again."
    )


def as_paths(path: str | Path | list[str] | list[Path]) -> list[Path]:
    """Returns one path or a list of paths as a list of local files; checks that each is a file."""
    paths = [cached_path(each) for each in ([path] if isinstance(path, str | Path) else path)]
    if not paths:
        raise ValueError("Expected at least one file, received an empty list.")
    for each in paths:
        check_file(each)
    return paths
