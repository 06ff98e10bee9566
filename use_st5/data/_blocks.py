"""Blocks of a text file: complete records, some megabytes at a time, and which of them look bad."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

import numpy as np

from use_st5.data import _records
from use_st5.data.quoted_rows import COMMAS_OF_ROWS, MOST_LINES
from use_st5.io.lines import LONG_LINE, LongLine, bounded_lines, check_line_feed, skipped

_BLOCK = 2**23
_MARK = b"\xef\xbb\xbf"
_LINE_FEED, _RETURN, _QUOTE, _OPEN, _CLOSE = b'\n\r"{}'
# The bytes that may stand before a quote that opens a field, and after a quote that closes one. A
# quote inside a field is written twice: the first one closes the field, the second one opens it
# again.
_BEFORE_OPENING = np.frombuffer(b',\n"', np.uint8)
_BEHIND_CLOSING = np.frombuffer(b',\n\r"', np.uint8)


@dataclasses.dataclass(frozen=True)
class Block:
    """Some records of a text file.

    Attributes:
        data: The bytes, with a line feed after every record.
        ends: Where each record ends, after its line feed, int `[records]`.
        first: The number of the first line.
    """

    data: bytes
    ends: np.ndarray
    first: int

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each record starts, int `[records]`."""
        return np.concatenate([[0], self.ends])[:-1]

    @cached_property
    def numbers(self) -> np.ndarray:
        """The number of the first line of each record, int `[records]`."""
        return self.first + self._counts_before(_LINE_FEED, self.starts)

    @cached_property
    def extra_lines(self) -> np.ndarray:
        """How many lines after its first one each record has, int `[records]`."""
        return self._counts(np.flatnonzero(self._bytes == _LINE_FEED)) - 1

    def lines(self, place: int) -> list[bytes]:
        """The lines of a record, without their ends."""
        return _lines(self.data[self.starts[place] : self.ends[place]])

    def all_lines(self) -> list[bytes]:
        """The lines of all records, without their ends."""
        return _lines(self.data)

    def behind(self, other: Block) -> Block:
        """Returns the lines after those of `other`, a block with the same start."""
        return block_of(self.data[len(other.data) :], self.first + other.data.count(b"\n"))

    def joined_to(self, before: Block) -> Block:
        """Returns the lines of the block before this one together with its own lines."""
        return block_of(before.data + self.data, before.first) if len(before) else self

    @property
    def is_long(self) -> bool:
        """Whether the block is longer than a quoted text may be."""
        return len(self) > MOST_LINES or len(self.data) > csv.field_size_limit()

    @property
    def longest(self) -> int:
        """Bytes of the longest record."""
        return int((self.ends - self.starts).max(initial=0))

    def joined(self, places: np.ndarray) -> bytes:
        """The bytes of some records."""
        if len(places) == len(self):
            return self.data
        spans = zip(self.starts[places].tolist(), self.ends[places].tolist(), strict=True)
        return b"".join([self.data[start:end] for start, end in spans])

    def odd_objects(self) -> np.ndarray:
        """Whether each line does not look like a JSON object, bool `[records]`."""
        last = self.ends - 2
        last = np.where((last > 0) & (self._bytes[last] == _RETURN), last - 1, last)
        braces = (self._bytes[self.starts] == _OPEN) & (self._bytes[last] == _CLOSE)
        return self._odd() | ~braces

    def odd_fields(self, delimiter: int, width: int, *, quoted: bool) -> np.ndarray:
        """Whether each record is blank, or seems not to have `width` fields, bool `[records]`."""
        delimiters = np.flatnonzero(self._bytes == delimiter)
        odd = self._odd()
        if quoted:
            delimiters = delimiters[np.searchsorted(self._quotes, delimiters) % 2 == 0]
            # Also records that may be rows swallowed by a quote, and fields too long for `csv`.
            odd |= self.extra_lines * (width - 1) >= COMMAS_OF_ROWS
            odd |= self.extra_lines > MOST_LINES
            odd |= self.ends - self.starts > csv.field_size_limit()
        return odd | (self._counts(delimiters) != width - 1)

    def regular(self) -> tuple[Block, bool]:
        """Returns the records of csv before the first quote that neither opens nor closes a field.

        Returns:
            The block, cut to these records, and whether it has no such quote.
        """
        quotes, line_feeds = self._quotes, self.ends - 1
        before = np.where(quotes > 0, self._bytes[quotes - 1], _LINE_FEED)
        behind = self._bytes[quotes + 1]
        faults = [quotes[0::2][~np.isin(before[0::2], _BEFORE_OPENING)][:1]]
        faults += [
            quotes[1::2][~np.isin(behind[1::2], _BEHIND_CLOSING)][:1],
            self._lone_returns[:1],
        ]
        limit = min(np.concatenate(faults).tolist(), default=len(self.data))
        outside = np.searchsorted(quotes, line_feeds) % 2 == 0
        ends = self.ends[outside & (line_feeds < limit)]
        size = int(ends[-1]) if len(ends) else 0
        return Block(self.data[:size], ends, self.first), limit == len(self.data)

    def _odd(self) -> np.ndarray:
        """Whether each record is empty, too long, no UTF-8 or has a lone carriage return."""
        sizes = self.ends - self.starts
        odd = np.isin(self._bytes[self.starts], (_LINE_FEED, _RETURN))
        odd |= sizes > _records.LONGEST_ROW
        odd[self._records_of(self._lone_returns)] = True
        try:
            self.data.decode()
        except UnicodeDecodeError:
            for record in self._records_of(np.flatnonzero(self._bytes >= 128)):
                odd[record] |= not _is_utf8(self.data[self.starts[record] : self.ends[record]])
        return odd

    def _records_of(self, positions: np.ndarray) -> np.ndarray:
        return np.unique(np.searchsorted(self.ends, positions, side="right"))

    def _counts(self, positions: np.ndarray) -> np.ndarray:
        """How many of the positions lie in each record, int `[records]`."""
        return np.diff(np.searchsorted(positions, self.ends), prepend=0)

    def _counts_before(self, byte: int, positions: np.ndarray) -> np.ndarray:
        return np.searchsorted(np.flatnonzero(self._bytes == byte), positions)

    @cached_property
    def _bytes(self) -> np.ndarray:
        return np.frombuffer(self.data, np.uint8)

    @cached_property
    def _quotes(self) -> np.ndarray:
        return np.flatnonzero(self._bytes == _QUOTE)

    @property
    def _lone_returns(self) -> np.ndarray:
        if b"\r" not in self.data:
            return np.empty(0, np.int64)
        returns = np.flatnonzero(self._bytes == _RETURN)
        return returns[self._bytes[returns + 1] != _LINE_FEED]


def block_of(data: bytes, first: int) -> Block:
    """Returns a block whose records are its lines; `first` is the number of the first line."""
    return Block(data, np.flatnonzero(np.frombuffer(data, np.uint8) == _LINE_FEED) + 1, first)


class Lines:
    """The lines of an open file, many at once or one by one.

    Args:
        file: An open file with unpacked content, at its start.
        where: Its name.

    Attributes:
        number: The number of the line that is read next, from 1.
        ended: Whether the latest block was empty: the end of the file.
    """

    def __init__(self, file: BinaryIO, where: str) -> None:
        self.number = 1
        self.ended = False
        self._file = file
        self._where = where

    def block(self) -> Block:
        """Returns the next lines, each as a record; an empty block at the end of the file."""
        data = self._file.read(_BLOCK)
        if data and not data.endswith(b"\n"):
            data += self._file.readline(_records.LONGEST_ROW + 1)
            if self.number == 1 and b"\n" not in data:
                check_line_feed(data, where=self._where)
            if not data.endswith(b"\n"):  # The end of the file, or a line that is too long.
                skipped(self._file, b"...")
                data += b"\n"
        self.ended = not data
        if self.number == 1:
            data = data.removeprefix(_MARK)
        block = block_of(data, self.number)
        self.number += len(block)
        return block

    def __iter__(self) -> Iterator[bytes]:
        """Yields the next lines one by one, without their ends; a `LongLine` if one is too long."""
        longest = _records.LONGEST_ROW
        for line in bounded_lines(self._file, self._where, longest, skip_long=True):
            self.number += 1
            yield line if isinstance(line, LongLine) else line.rstrip(b"\r\n")


def _lines(data: bytes) -> list[bytes]:
    lines = (line.rstrip(b"\r") for line in data.removesuffix(b"\n").split(b"\n"))
    longest = _records.LONGEST_ROW
    return [line if len(line) < longest else LongLine(line[:LONG_LINE]) for line in lines]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
