import time
from collections.abc import Callable

import pytest

from use_st5.io import progress_lines as module
from use_st5.io.progress import watched
from use_st5.io.progress_lines import progress_lines, waiting


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
    assert [*passing] == ["b", "c"]


def test_short_work_says_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert module._LINE_EVERY == 10
    with progress_lines(lambda: "rows: 7"), waiting("building an index"):
        pass
    assert capsys.readouterr().err == ""


def test_what_is_watched_passes_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    passing = watched(iter("abc"), "Reading letters", 3)
    assert next(passing) == "a", "nothing is held back"
    assert [*passing] == ["b", "c"]
    assert "Reading letters" in capsys.readouterr().err


def test_a_transient_bar_is_drawn_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [*watched("abc", "Reading letters", transient=True)] == [*"abc"]
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # Makes rich write as to a terminal.
    assert [*watched("abc", "Reading letters", transient=True)] == [*"abc"]
    written = capsys.readouterr()
    assert "Reading letters" in written.err
    assert written.out == ""


def test_a_name_in_a_terminal_is_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with waiting("downloading gs://bucket/[/red]\x9b2J"):
        pass
    assert "[/red]�2J" in capsys.readouterr().err
