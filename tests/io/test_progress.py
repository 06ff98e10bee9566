from __future__ import annotations

import io
import itertools
import os
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from use_st5.io import progress as module
from use_st5.io.lines import batched, in_chunks, in_threads
from use_st5.io.progress import progress_bars, progress_lines, waiting, watched


@pytest.fixture
def until_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], str]:
    """Waits for output on standard error, while a progress line is due every hundredth second."""
    monkeypatch.setattr(module, "_LINE_EVERY", 0.01)

    def said() -> str:
        end = time.monotonic() + 10
        while not (found := capsys.readouterr().err) and time.monotonic() < end:
            time.sleep(0.01)
        return found

    return said


def test_long_work_says_lines_where_there_is_no_terminal(
    until_said: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_lines(lambda: "rows: 7"):
        assert until_said().startswith("rows: 7, 0 s\n")
    with waiting("building an index"):
        assert until_said().startswith("building an index, 0 s\n")
    with progress_lines(lambda: "all of it"), progress_lines(lambda: "a part"):
        capsys.readouterr()
        assert until_said().startswith("a part, 0 s\n")
    passing = watched(iter("abc"), "Reading letters", 3, transient=True)
    next(passing)
    assert until_said().startswith("Reading letters: 0 of 3, 0 s\n")
    assert next(passing) == "b"
    assert "Reading letters: 1 of 3, " in until_said()
    assert [*passing] == ["c"]


def test_short_work_says_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert module._LINE_EVERY == 10
    with progress_lines(lambda: "rows: 7"), waiting("building an index"):
        pass
    assert capsys.readouterr().err == ""


def test_a_name_in_a_terminal_is_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with waiting("downloading gs://bucket/[/red]\x9b2J"):
        pass
    assert "[/red]�2J" in capsys.readouterr().err


def test_lines_say_how_far_each_unfinished_task_is() -> None:
    with progress_bars(console=Console(file=io.StringIO()), disable=True) as bars:
        bars.add_task("done", total=2, completed=2)
        row = bars.add_task("  training", total=1_200, losses="", speed="")
        bars.add_task("sentences encoded", total=None)
        assert module._state(bars) == "training: 0 of 1,200; sentences encoded: 0"
        bars.update(row, completed=40, losses="nli 0.5", speed="2 steps/s")
        assert module._state(bars).startswith("training: 40 of 1,200  nli 0.5  2 steps/s; ")


def test_a_stream_is_read_as_far_as_its_lists_are() -> None:
    assert list(batched("", 2)) == []
    assert list(batched("abc", 2)) == [["a", "b"], ["c"]]
    numbers = itertools.count()
    lists = batched(numbers, 3)
    assert [next(lists), next(lists)] == [[0, 1, 2], [3, 4, 5]]
    assert next(numbers) == 6


def test_chunks_end_by_rows_or_with_the_text_that_brings_them_to_their_characters() -> None:
    texts = ["aaa", "bbbb", "c", "d", "e", "ffffffffff", "g"]
    found = in_chunks(texts, rows=3, characters=7, length=len)
    assert list(found) == [["aaa", "bbbb"], ["c", "d", "e"], ["ffffffffff"], ["g"]]


def test_threads_keep_the_order_and_take_little_ahead() -> None:
    numbers = itertools.count()
    results = in_threads(lambda n: n * n, numbers)
    assert list(itertools.islice(results, 5)) == [0, 1, 4, 9, 16]
    assert next(numbers) <= 6 + (os.cpu_count() or 1)
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda n: 1 // n, [1, 0]))
