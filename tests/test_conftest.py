"""What the summary of a test run says and keeps."""

from __future__ import annotations

import re

import pytest

from tests.conftest import pytest_terminal_summary


class Reporter:
    """A run without a cache (`-p no:cacheprovider`) that skipped one test."""

    config = object()

    def __init__(self, reason: str) -> None:
        report = pytest.CollectReport("a", "skipped", ("a.py", 1, f"Skipped: {reason}"), None)
        self.stats = {"skipped": [report]}
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.lines.append(title)

    def write_line(self, line: str) -> None:
        self.lines.append(line)


def test_a_run_without_a_cache_has_a_summary() -> None:
    reporter = Reporter("no such device")
    pytest_terminal_summary(reporter)
    *lines, peak = reporter.lines
    assert lines == ["left out", "1 do not fit this machine: no such device"]
    assert re.fullmatch(r"peak memory of the tests' own process: \d+\.\d GB", peak)
