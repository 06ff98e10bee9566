"""Ctrl-C before a command has begun: one line and the exit code 130."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

import use_st5.__main__
from use_st5.cli import interrupts
from use_st5.cli.main import app
from use_st5.cli.one_line_errors import OneLineErrors


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The Ctrl-Cs that were heard; what hears them goes with the test."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(interrupts, "_heard", heard := [])
    yield heard
    signal.signal(signal.SIGINT, before)


class InterruptedImport:
    """Sends a Ctrl-C where a module is looked for, as a user may, and perhaps swallows it."""

    def __init__(self, name: str, *, swallowed: bool) -> None:
        self._name, self._swallowed = name, swallowed

    def find_spec(self, name: str, *_: Any) -> None:
        if name == self._name:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if not self._swallowed:
                    raise
                raise RuntimeError("something else") from None


@pytest.mark.parametrize("swallowed", [False, True])
def test_it_is_heard_while_the_commands_are_imported(
    swallowed: bool,
    heard: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delitem(sys.modules, "use_st5.cli.main")
    finder = InterruptedImport("use_st5.cli.main", swallowed=swallowed)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        use_st5.__main__.main()
    assert (end.value.code, capsys.readouterr().err) == (130, "interrupted\n")
    assert heard == [signal.SIGINT]


def test_it_is_said_while_the_line_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a command begins typer notices it alone, and says nothing."""

    def make_context(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OneLineErrors, "make_context", make_context)
    result = CliRunner().invoke(app, ["similarity", "a", "b"])
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_an_error_of_an_import_stays_what_it_is(
    heard: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "use_st5.cli.main", None)
    with pytest.raises(ImportError):
        use_st5.__main__.main()
    assert not heard
