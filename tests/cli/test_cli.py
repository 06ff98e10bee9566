"""The command line as a whole: help, errors, exit codes and imports."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

import use_st5
from tests.tiny_bert import write_sentence_bert
from use_st5.cli import main as cli
from use_st5.cli.main import app
from use_st5.cli.output import manual, print_table
from use_st5.hub.bundled import bundled_names
from use_st5.io import progress_lines

COMMANDS = tuple(
    name for name, each in typer.main.get_command(app).commands.items() if not each.hidden
)


def plain(text: str) -> str:
    """Help without colours, frames and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", text).split())


def test_help_lists_every_command_and_the_exit_codes(use: Callable) -> None:
    result = use("--help")
    assert result.exit_code == 0
    text = plain(result.stdout)
    for command in COMMANDS:
        assert command in text
    assert "0 done, 1 failure, 2 wrong usage, 130 interrupted" in text
    assert f"models: {', '.join(bundled_names())}." in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_is_a_manual(use: Callable, command: str) -> None:
    for flag in ("--help", "-h"):
        result = use(command, flag)
        assert result.exit_code == 0
        text = plain(result.stdout)
        examples = text.split("Examples")[1]
        assert f"use-st5 {command}" in examples
        assert len(text) > 400


def test_version(use: Callable) -> None:
    assert use("--version").stdout == f"{use_st5.__version__}\n"


@pytest.mark.parametrize("arguments", [("embe",), ("--nonsense",), ("embed", "--nonsense")])
def test_wrong_usage_is_one_line_and_2(use: Callable, arguments: tuple[str, ...]) -> None:
    result = use(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: No such")
    assert result.stderr.endswith("--help`.\n")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_no_command_shows_the_help_and_fails(use: Callable) -> None:
    result = use()
    assert result.exit_code == 2
    assert "Usage: use-st5" in result.output
    assert "error" not in result.stderr


def test_examples_and_paragraphs_of_a_manual() -> None:
    text = manual("First\n    line.\n\n    Second.", "run x[0]")
    assert text == "First line.\n\nSecond.\n\n\b\n[bold]Examples[/bold]\n  run x\\[0]"


def test_cells_cannot_break_the_lines_of_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a", "b"], [("x\ty", "line\nbreak")], title="unseen")
    assert capsys.readouterr().out == "a\tb\nx y\tline break\n"


def test_tensorflow_that_does_not_load_is_one_line_with_the_next_step(
    use: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)

    def fail(name: str) -> None:
        raise RuntimeError(f"no {name}\ntoday")

    monkeypatch.setattr("use_st5.cli.models.importlib.import_module", fail)
    result = use("similarity", "a", "b")
    assert result.exit_code == 1
    assert "RuntimeError: no tensorflow today" in result.stderr
    assert "use-st5 doctor" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_terminal_gets_a_drawn_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_table(["text"], [("[bold]kept[/bold]",)], title="Title")
    drawn = capsys.readouterr().out
    assert "[bold]kept[/bold]" in drawn
    assert "────" in drawn
    assert drawn.startswith("Title")


@pytest.mark.process
def test_help_in_a_fresh_process_imports_nothing_heavy(fresh_python: Callable) -> None:
    assert "Usage: use-st5" in fresh_python("-m", "use_st5", "--help")
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from use_st5.cli.main import app\n"
        "assert CliRunner().invoke(app, ['embed', '--help']).exit_code == 0\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'scipy', 'matplotlib', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    assert fresh_python("-c", code) == "[]\n"


def test_the_installed_command_is_this_one() -> None:
    assert app.info.name == "use-st5"


def test_a_command_that_says_nothing_is_known_to_be_at_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def silent(**options: str) -> None:
        end = time.monotonic() + 10
        while not said and time.monotonic() < end:
            time.sleep(0.01)
            said.extend(capsys.readouterr().err.splitlines())

    monkeypatch.setattr(sys, "argv", ["use-st5", "--debug", "info"])
    monkeypatch.setattr(progress_lines, "_LINE_EVERY", 0.01)
    monkeypatch.setattr(cli, "app", silent)
    cli.main()
    assert said[0] == "use-st5 info is running, 0 s"


def test_a_checkpoint_is_a_model(
    use: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = str(write_sentence_bert(tmp_path / "bert"))
    shown = use("info", folder)
    assert (shown.exit_code, "bert" in shown.stdout) == (0, True)
    compared = use("similarity", "a cat", "a cat", "--model", folder)
    assert (compared.exit_code, "1.000" in compared.stdout) == (0, True)
