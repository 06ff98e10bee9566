"""Lines of text files as they come from the world: gzip, byte order marks, CRLF, broken UTF-8."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def open_binary(path: Path) -> BinaryIO:
    """Opens a plain or gzip-compressed file, told apart by its first two bytes.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: It is a folder, or UTF-16.
    """
    check_file(path)
    with path.open("rb") as file:
        start = file.read(2)
    if start in _UTF16_MARKS:
        raise ValueError(
            f"{path}: expected UTF-8 text, received UTF-16 (by its byte order mark). "
            f"Convert it first, for example: iconv -f UTF-16 -t UTF-8 '{path}'"
        )
    return gzip.open(path) if start == _GZIP else path.open("rb")  # type: ignore[return-value]


def check_file(path: Path) -> None:
    """Raises FileNotFoundError or ValueError unless `path` is a file."""
    if path.is_dir():
        raise ValueError(f"{path}: expected a file, received a folder. Name the files in it.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a file, found nothing there.")


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""Line numbers from 1 and lines without byte order mark, line feed and carriage return.

    Lines end at `\n` alone: `str.splitlines` would also break at U+0085 and U+2028, which occur
    inside sentences of real files.

    Raises:
        FileNotFoundError: There is no file at `path`.
        ValueError: It is a folder, UTF-16, or a damaged gzip file.
    """
    number = 0
    with open_binary(path) as file:
        try:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(_UTF8_MARK)
                yield number, line.rstrip(b"\r\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path}: the gzip file is damaged or cut off after line {number} ({error}). "
                "Fetch it again."
            ) from error


def as_paths(path: str | Path | list[str] | list[Path]) -> list[Path]:
    """One path or a list of paths as a list, each of them checked to be a file."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(each) for each in path]
    if not paths:
        raise ValueError("Expected at least one file, received an empty list.")
    for each in paths:
        check_file(each)
    return paths
