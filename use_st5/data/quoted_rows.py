"""Comma-separated rows whose fields may be quoted, and quotes that are never closed."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import NoReturn

# A row over more lines than this is taken for a quote that nobody closed, and not for a text.
MOST_LINES = 1000
# Lines of a quoted text are taken for rows if this share of them has as many commas as a row, and
# those lines have at least this many commas together.
_LIKE_ROWS, COMMAS_OF_ROWS = 0.9, 20
# A broken row over no more lines than this is a malformed row, and nothing worse.
_FEW_LINES = 10


def quoted_rows(
    lines: Iterable[str], *, where: str, first: int = 1, width: int = 0, enough: int | None = None
) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """Yields rows as RFC 4180 defines them: a quoted field may go on over several lines.

    Args:
        lines: The lines with their line feeds.
        where: The file, for messages.
        first: The number of the first line.
        width: The number of fields in a row; 0: as many as in the first row.
        enough: No row begins after this many lines; None: all lines are read.

    Yields:
        The number of a row's first line, from 1, and its fields. For a broken row, the number of
        each of its lines with an error instead of the fields.

    Raises:
        ValueError: A quote opens a field and swallows the rows that follow: the row has over 1,000
            lines, lines that are themselves rows, or more characters on several lines than
            `csv.field_size_limit()`; or it is broken after more than 10 lines.
    """
    counted_lines = _Lines(lines, where, first - 1, width)
    reader = csv.reader(counted_lines, strict=True)
    last = None if enough is None else first - 1 + enough
    while last is None or counted_lines.number < last:
        first = counted_lines.begin_row()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if counted_lines.number - first >= _FEW_LINES:
                counted_lines.refuse(
                    f"the row has an error in line {counted_lines.number} ({error})"
                )
            if counted_lines.number > first:
                error = csv.Error(f"{error}; a row in lines {first} to {counted_lines.number}")
            yield from [(number, error) for number in range(first, counted_lines.number + 1)]
            continue
        counted_lines.width = counted_lines.width or len(fields)
        yield first, fields


class _Lines:
    """Gives lines to `csv.reader`, and checks those that continue a row.

    Attributes:
        number: The number of the latest line, from 1.
        width: The number of fields in a row; 0 before the first row.
    """

    def __init__(self, lines: Iterable[str], where: str, number: int, width: int) -> None:
        self.number = number
        self.width = width
        self._lines = iter(lines)
        self._where = where
        self._first = 1

    def begin_row(self) -> int:
        """Gives the number of the line that the next row begins with."""
        self._first = self.number + 1
        self._like_rows = self._size = 0
        return self._first

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            if self.number > self._first:
                self._check(line)
            yield line

    def _check(self, line: str) -> None:
        """Checks a line that continues a row."""
        self._size += len(line)
        if "," in line and line.count(",") == self.width - 1:
            self._like_rows += 1
        inside = self.number - self._first
        enough_commas = self._like_rows * (self.width - 1) >= COMMAS_OF_ROWS
        if enough_commas and self._like_rows >= _LIKE_ROWS * inside:
            self._refuse_open("the lines after it look like rows", line)
        if inside > MOST_LINES:
            self._refuse_open(f"it is open for more than {MOST_LINES:,} lines", line)
        if self._size > csv.field_size_limit():
            self._refuse_open(
                f"it is open for more than {csv.field_size_limit():,} characters", line
            )

    def _refuse_open(self, what: str, line: str) -> NoReturn:
        """Refuses the row, whose quote is open before this line; says where it is closed."""
        while line.count('"') % 2 == 0:
            following = next(self._lines, None)
            if following is None:
                self.refuse(f"{what}, and no line until the last one ({self.number}) closes it")
            line = following
            self.number += 1
        self.refuse(f"{what}, and line {self.number} closes it")

    def refuse(self, what: str) -> NoReturn:
        """Refuses the row and says why."""
        raise ValueError(
            f"{self._where}:{self._first}: expected a closing quote for the field that opens in "
            f"this line; {what}. Add the quote, and write a quote inside a quoted text twice "
            '(""). Longer texts can be read from .jsonl and .parquet files.'
        )
