"""The common loop of all row readers: counts, reports and refuses rows."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from use_st5.data.read_report import ReadReport
from use_st5.io.lines import as_paths

_log = logging.getLogger(__name__)
# A file of another format is recognized after this number of rows, not after gigabytes.
_HOPELESS = 100


class MalformedRowError(ValueError):
    """A row breaks its format; the message is the reason, without the place."""


class SkippedRowError(Exception):
    """A row that its format excludes; the message has the reason."""


class Reader(ABC):
    """An iterable over the examples of one file or several, read as a stream.

    Every pass starts at the beginning and fills a new `report`. Malformed rows are left out and
    counted; too many of them are an error.

    Args:
        path: A file (gzip or plain) or a list of files.
        strict: Whether the first malformed row is an error.
        max_malformed: The share of malformed rows, in `[0, 1]`, above which the pass ends in an
            error. It is checked at the end, and after 100 rows if none of them was good.

    Attributes:
        report: The `ReadReport` of the latest pass.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A path is a folder; during the pass: a file without rows, too many malformed
            rows, any malformed row if `strict`, no example at all.
    """

    # The content that a file should have, for error messages.
    expects = "rows"
    # Whether a pass that left rows out says so in the log: not needed if the caller shows the
    # report.
    warns = True

    def __init__(
        self,
        path: str | Path | list[str] | list[Path],
        *,
        strict: bool = False,
        max_malformed: float = 0.01,
    ) -> None:
        if not 0 <= max_malformed <= 1:
            raise ValueError(f"max_malformed: expected a share in [0, 1], received {max_malformed}")
        self.paths = as_paths(path)
        self.strict = strict
        self.max_malformed = max_malformed
        self.report = ReadReport()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Starts a pass over all files."""
        report = self.report = ReadReport()
        for path in self.paths:
            before = _seen(report)
            for line, row in self._rows(path):
                yield from self._taken(path, line, row)
            self._check_seen(path, before)
        self._check_report()

    def _check_seen(self, path: Path, before: int = 0) -> None:
        """Refuses a file without rows; `before` is the number of rows seen before this file."""
        if _seen(self.report) == before:
            raise ValueError(f"{path}: the file has no rows. Expected {self.expects}.")

    def _check_report(self) -> None:
        """Refuses a pass with too many malformed rows or without any good one."""
        report = self.report
        self._check_share(report)
        if report.malformed_rows and self.warns:
            _log.warning("%s: left out malformed rows\n%s", self._names(), report)
        if not report.examples:
            raise ValueError(
                f"{self._names()}: no usable row. Expected {self.expects}. Received:\n{report}"
            )

    @abstractmethod
    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        """Yields line numbers and raw rows; an exception that is yielded as a row is raised."""

    @abstractmethod
    def _examples(self, row: Any) -> list[dict[str, Any]]:
        """Turns a row into examples; raises MalformedRowError or SkippedRowError."""

    def _taken(self, path: Path, line: int, row: Any) -> list[dict[str, Any]]:
        """Returns the examples of a raw row, and counts the row, whether it is good or not."""
        report = self.report
        try:
            if isinstance(row, MalformedRowError | SkippedRowError):
                raise row
            examples = self._examples(row)
        except SkippedRowError as reason:
            report.skipped[str(reason)] += 1
        except MalformedRowError as reason:
            self._refuse(path, line, str(reason), report)
        else:
            report.rows += 1
            report.examples += len(examples)
            return examples
        return []

    def _refuse(self, path: Path, line: int, reason: str, report: ReadReport) -> None:
        report.add_malformed(path, line, reason)
        if self.strict:
            raise ValueError(f"{path}:{line}: {reason}. Expected {self.expects}.")
        if not report.rows and report.malformed_rows >= _HOPELESS:
            self._check_share(report)

    def _check_share(self, report: ReadReport) -> None:
        report.check(self._names(), max_malformed=self.max_malformed, expects=self.expects)

    def _names(self) -> str:
        other_count = len(self.paths) - 1
        return f"{self.paths[0]}" + (f" and {other_count} more" if other_count else "")


def _seen(report: ReadReport) -> int:
    return report.rows + report.malformed_rows + report.skipped.total() - report.skipped["blank"]
