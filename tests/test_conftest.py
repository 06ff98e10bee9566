"""The hooks of conftest.py: the summary of a test run, the order of its files, and its memory."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import (
    _FIRST,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
)


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


class Item:
    """A collected test, and the marks that were added to it."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.keywords: set[str] = set()
        self.marks: list[pytest.Mark] = []

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)


def test_a_run_without_a_cache_has_a_summary() -> None:
    reporter = Reporter("no such device")
    pytest_terminal_summary(reporter)
    *lines, peak = reporter.lines
    assert lines == ["left out", "1 do not fit this machine: no such device"]
    assert re.fullmatch(r"peak memory of the tests' own process: \d+\.\d GB", peak)


def collected(*arguments: str, option: bool = False, **given: object) -> list[Item]:
    """Four tests, the second end-to-end, as a run with these arguments orders and marks them."""
    files = ["cli/test_a.py", "training/test_b.py", "test_c.py", "test_documents.py"]
    items = [Item(f"tests/{file}::test") for file in files]
    items[1].keywords = {"end_to_end"}
    options = {"end_to_end": option}
    config = SimpleNamespace(args=arguments, getoption=options.__getitem__, **given)
    pytest_collection_modifyitems(config, items)
    return items


def test_one_of_several_processes_begins_with_the_large_and_the_long_files(
    repository: Path,
) -> None:
    assert [item.nodeid[-10] for item in collected()] == ["a", "b", "c", "s"]
    assert [item.nodeid[-10] for item in collected(workerinput={})] == ["s", "b", "a", "c"]
    named = collected("tests/test_c.py::test", workerinput={})  # as named, the nearest first
    assert [item.nodeid[-10] for item in named] == ["a", "b", "c", "s"]
    assert all((repository / name).exists() for names in _FIRST for name in names)


def test_what_goes_from_end_to_end_runs_where_it_is_asked_for_or_named() -> None:
    [mark] = collected("tests")[1].marks
    assert mark.name == "skip"
    assert not any(item.marks for item in collected("tests", option=True))
    assert not any(item.marks for item in collected("tests/training/test_b.py::test"))
    reporter = Reporter(mark.kwargs["reason"])
    pytest_terminal_summary(reporter)
    assert reporter.lines[1].startswith("1 go from end to end")
