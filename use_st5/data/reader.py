"""The common loop of all row readers: counts, reports and refuses rows."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from use_st5.io.lines import as_paths

_log = logging.getLogger(__name__)
# A file of another format is recognized after this number of rows, not after gigabytes.
_HOPELESS = 100
# Enough to see what is wrong with a file; a report stays small however large the file is.
_MAX_OFFENCES, _MAX_REASONS, _MAX_SPANS = 10, 50, 3


class MalformedRowError(ValueError):
    """A row breaks its format; the message is the reason, without the place."""


class SkippedRowError(Exception):
    """A row that its format excludes; the message has the reason."""


@dataclass
class ReadReport:
    """Counts of one pass over the files of a reader.

    A row is *skipped* when the format itself says so (a label `-`, a blank line) and *malformed*
    when it breaks the format. Both are counted by reason.

    Attributes:
        rows: Rows that were read without an error.
        examples: Examples from these rows (one dialogue gives many).
        skipped: Reason → number of rows.
        malformed: Reason → number of rows.
        notes: Remark on rows that were read nevertheless, such as a decoding fallback → number.
        joined: Rows of csv whose quoted texts go on over several lines.
        joined_lines: The first and the last line of the first of them.
        offences: The first malformed rows, as "file:line: reason".
    """

    rows: int = 0
    examples: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    joined: int = 0
    joined_lines: list[tuple[int, int]] = field(default_factory=list)
    offences: list[str] = field(default_factory=list)

    @property
    def malformed_rows(self) -> int:
        """Number of malformed rows."""
        return self.malformed.total()

    @property
    def malformed_share(self) -> float:
        """Malformed rows as a share of all that were neither skipped nor blank, in `[0, 1]`."""
        return self.malformed_rows / max(1, self.rows + self.malformed_rows)

    @property
    def seen(self) -> int:
        """Number of rows that are not blank, whether they were read, skipped or malformed."""
        return self.rows + self.malformed_rows + self.skipped.total() - self.skipped["blank"]

    def add_malformed(self, path: Path, line: int, reason: str) -> None:
        """Counts a malformed row and keeps its place if it is among the first."""
        is_listed = reason in self.malformed or len(self.malformed) < _MAX_REASONS
        self.malformed[reason if is_listed else "other reasons"] += 1
        if len(self.offences) < _MAX_OFFENCES:
            self.offences.append(f"{path}:{line}: {reason}")

    def add_joined(self, line: int, extra: int) -> None:
        """Counts a row that begins in a line and has `extra` lines after it."""
        self.joined += 1
        if len(self.joined_lines) < _MAX_SPANS:
            self.joined_lines.append((line, line + extra))

    def joined_message(self) -> str:
        """Says which lines a quote joins to one row; "" if there are none."""
        if not self.joined:
            return ""
        lines = ", ".join(f"{first:,} to {last:,}" for first, last in self.joined_lines)
        more = ", …" if self.joined > len(self.joined_lines) else ""
        return (
            f"rows over several lines, which a quote joins: {self.joined:,} (lines {lines}{more}). "
            "If this is wrong, close the quote in its line"
        )

    def __str__(self) -> str:
        """One line of totals, then one line per reason and per kept offence."""
        lines = [
            f"{self.rows} rows read, {self.examples} examples, "
            f"{self.skipped.total()} skipped, {self.malformed_rows} malformed"
        ]
        for name in ("skipped", "malformed", "notes"):
            counts: Counter[str] = getattr(self, name)
            lines += [f"  {name}: {reason}: {count}" for reason, count in counts.most_common()]
        lines += [f"  {offence}" for offence in self.offences]
        return "\n".join(lines)


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
        exists: bool = True,
    ) -> None:
        if not 0 <= max_malformed <= 1:
            raise ValueError(f"max_malformed: expected a share in [0, 1], received {max_malformed}")
        self.paths = as_paths(path) if exists else [Path(str(path))]
        self.strict = strict
        self.max_malformed = max_malformed
        self.report = ReadReport()

    @abstractmethod
    def _rows(self, path: Path) -> Iterator[tuple[int, Any]]:
        """Yields line numbers and raw rows; an exception that is yielded as a row is raised."""

    @abstractmethod
    def _examples(self, row: Any) -> list[dict[str, Any]]:
        """Turns a row into examples; raises MalformedRowError or SkippedRowError."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Starts a pass over all files."""
        report = self.report = ReadReport()
        for path in self.paths:
            before = report.seen
            for line, row in self._rows(path):
                try:
                    if isinstance(row, Exception):
                        raise row
                    examples = self._examples(row)
                except SkippedRowError as reason:
                    report.skipped[str(reason)] += 1
                except MalformedRowError as reason:
                    report.add_malformed(path, line, str(reason))
                    if self.strict:
                        raise ValueError(
                            f"{path}:{line}: {reason}. Expected {self.expects}."
                        ) from reason
                    if not report.rows and report.malformed_rows >= _HOPELESS:
                        self._check_share()
                else:
                    report.rows += 1
                    report.examples += len(examples)
                    yield from examples
            if report.seen == before:
                raise ValueError(f"{path}: the file has no rows. Expected {self.expects}.")
        self._finish()

    def _finish(self) -> None:
        """Refuses a pass with too many malformed rows or without any good one."""
        report = self.report
        self._check_share()
        if report.malformed_rows and self.warns:
            _log.warning("%s: left out malformed rows\n%s", self._names(), report)
        if not report.examples:
            raise ValueError(
                f"{self._names()}: no usable row. Expected {self.expects}. Received:\n{report}"
            )

    def _check_share(self) -> None:
        if self.report.malformed_share > self.max_malformed:
            raise ValueError(
                f"{self._names()}: expected {self.expects}, and at most {self.max_malformed:.2%} "
                f"malformed rows (max_malformed), found {self.report.malformed_share:.2%}. Correct "
                "the rows, or, with a reader in Python, raise max_malformed to skip them. The "
                f"report:\n{self.report}"
            )

    def _names(self) -> str:
        others = len(self.paths) - 1
        return f"{self.paths[0]}" + (f" and {others} more" if others else "")
