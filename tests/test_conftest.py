"""The hooks of conftest.py: the summary of a test run, the order of its files, and its memory."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import (
    _FIRST,
    LEFT_OUT,
    _build_graphs_without_stacks,
    _forget,
    pytest_collection_modifyitems,
    pytest_runtest_setup,
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


def test_no_test_starts_after_the_given_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(minutes: float | None) -> None:
        config = SimpleNamespace(getoption={"minutes": minutes}.__getitem__)
        pytest_runtest_setup(SimpleNamespace(config=config))

    monkeypatch.setattr("tests.conftest._STARTED", time.monotonic() - 600)
    start(None)
    start(11)
    with pytest.raises(pytest.skip.Exception) as skipped:
        start(9)
    reporter = Reporter(str(skipped.value))
    pytest_terminal_summary(reporter)
    assert "minutes" in reporter.lines[1]


def test_a_graph_with_a_gradient_of_its_own_is_given_back() -> None:
    import tensorflow as tf

    def graph() -> weakref.ref:
        function = tf.function(tf.custom_gradient(lambda x: (x, lambda upstream: upstream)))
        return weakref.ref(function.get_concrete_function(tf.TensorSpec([])).graph)

    kept = graph()
    gc.collect()
    assert kept() is not None  # TensorFlow never frees it
    _forget()
    gc.collect()
    assert kept() is None


def test_operations_of_a_graph_have_no_stack() -> None:
    import tensorflow as tf

    _build_graphs_without_stacks()
    graph = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([])).graph
    assert not any(operation.traceback for operation in graph.get_operations())


@pytest.mark.process
@pytest.mark.parametrize("processes", ["0", "2"])
def test_one_process_or_two_say_and_keep_the_same(
    repository: Path, tmp_path: Path, processes: str
) -> None:
    skip = "import pytest\ndef test_{}(): pytest.skip('needs real data: none')\n"
    for name in ("evaluation", "training"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(skip.format(name) + "def test(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "--rootdir", tmp_path]
        + ["-n", processes, "--dist", "loadfile", "--no-loadscope-reorder", tmp_path],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repository)},
        check=False,
    )
    *_, before, peak, closing = done.stdout.splitlines()
    assert before == "2 need real data: USE_ST5_DATA names the folder it is unpacked in"
    each = r" and ".join([r"\d+\.\d"] * max(int(processes), 1))
    assert re.fullmatch(rf"peak memory of the tests' own process: {each} GB", peak), peak
    assert re.match("=+ 2 passed, 2 skipped in", closing)
    kept = json.loads((tmp_path / ".pytest_cache" / "v" / LEFT_OUT).read_text())
    assert kept == [f"{name}/test_{name}.py::test_{name}" for name in ("evaluation", "training")]
