from __future__ import annotations

import re

import pytest

from use_st5.cli.output import print_cards

COLUMNS = ["task", "what it needs", "from"]
ROWS = [("sts12", "[bold]a[/bold]", "here"), ("weat1", "", "there " * 30)]


def test_a_pipe_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_cards(COLUMNS, ROWS[:1])
    assert capsys.readouterr().out == "task\twhat it needs\tfrom\nsts12\t[bold]a[/bold]\there\n"


def test_a_terminal_gets_cards_without_empty_cells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    print_cards(COLUMNS, ROWS)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    lines = [line.rstrip() for line in drawn.splitlines()]
    assert lines[:3] == ["sts12", "  what it needs  [bold]a[/bold]", "  from           here"]
    assert lines[3] == "weat1"
    assert lines[4].startswith("  from  there there")
    assert all(len(line) <= 60 for line in lines)
    assert all(line.startswith("        there") for line in lines[5:])
    assert sum(line.count("there") for line in lines[4:]) == 30
