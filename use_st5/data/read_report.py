"""The report of a reader: counts, and the first bad rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

# Enough to see what is wrong with a file; a report stays small however large the file is.
MAX_OFFENCES = 10
_MAX_REASONS = 50
_MAX_SPANS = 3


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

    def add_malformed(self, path: Path, line: int, reason: str) -> None:
        """Counts a malformed row and keeps its place if it is among the first."""
        is_listed = reason in self.malformed or len(self.malformed) < _MAX_REASONS
        self.malformed[reason if is_listed else "other reasons"] += 1
        if len(self.offences) < MAX_OFFENCES:
            self.offences.append(f"{path}:{line}: {reason}")

    def add_joined(self, line: int, extra: int) -> None:
        """Counts a row that begins in a line and has `extra` lines after it."""
        self.joined += 1
        self.joined_lines = sorted([*self.joined_lines, (line, line + extra)])[:_MAX_SPANS]

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

    def check(self, source: str, *, max_malformed: float, expects: str) -> None:
        """Raises ValueError if too many rows were malformed.

        Args:
            source: The name of the data that was read, for the message.
            max_malformed: The share of malformed rows, in `[0, 1]`, that is still allowed.
            expects: A description of the expected rows, for the message.
        """
        if self.malformed_share > max_malformed:
            raise ValueError(
                f"{source}: expected {expects}, and at most {max_malformed:.2%} malformed rows "
                f"(max_malformed), found {self.malformed_share:.2%}. Correct the rows, or, with a "
                f"reader in Python, raise max_malformed to skip them. The report:\n{self}"
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
