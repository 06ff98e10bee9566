"""One line of what `use-st5 doctor` reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a finding is: only `WRONG` makes the command fail."""

    OK = "ok"
    ABSENT = "-"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and what to do about it.

    Attributes:
        status: how it is.
        subject: what was looked at.
        found: what was found, such as a version.
        remedy: the command line or the step that helps; empty where nothing is to be done.
    """

    status: Status
    subject: str
    found: str
    remedy: str = ""
