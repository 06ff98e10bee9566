import pytest

from use_st5._progress import watched


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
    monkeypatch.setenv("FORCE_COLOR", "1")  # What rich takes for a terminal.
    assert [*watched("abc", "Reading letters", transient=True)] == [*"abc"]
    written = capsys.readouterr()
    assert "Reading letters" in written.err
    assert written.out == ""
