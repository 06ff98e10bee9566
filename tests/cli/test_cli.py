"""The command line as a whole: help, errors, exit codes, what it imports."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import use_st5
from use_st5 import _progress
from use_st5.cli import main as cli
from use_st5.cli.main import app
from use_st5.cli.one_line_errors import OneLineErrors
from use_st5.cli.output import manual, print_table

COMMANDS = tuple(typer.main.get_command(app).commands)
FULL = "No space left on device; make room there, or write elsewhere\n"


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


@pytest.fixture
def failing() -> Callable:
    """A command line whose one command raises what its argument names."""
    import typer

    errors = {
        "value": ValueError("expected a,\nreceived b"),
        "key": KeyError("text"),
        "empty": OSError(),
        "interrupt": KeyboardInterrupt(),
        "end": EOFError("no data left"),
        "pipe": BrokenPipeError(),
        "full": OSError(errno.ENOSPC, "No space left on device", "out.npy"),
        "output": OSError(errno.ENOSPC, "No space left on device"),
    }
    line = typer.Typer(cls=OneLineErrors)

    @line.command()
    def fail(kind: str) -> None:
        raise errors[kind]

    @line.callback()
    def options(debug: bool = False) -> None:
        pass

    return lambda *arguments: CliRunner().invoke(line, list(arguments))


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("value", 1, "error: expected a, received b\n"),
        ("key", 1, "error: KeyError: 'text' (--debug shows where)\n"),
        ("empty", 1, "error: OSError\n"),
        ("interrupt", 130, "interrupted\n"),
        ("end", 1, "error: a file ends too early: no data left\n"),
        ("full", 1, f"error: out.npy: {FULL}"),
        ("output", 1, f"error: standard output: {FULL}"),
    ],
)
def test_exceptions_become_one_line(failing: Callable, kind: str, code: int, message: str) -> None:
    result = failing("fail", kind)
    assert (result.exit_code, result.stderr) == (code, message)


@pytest.mark.parametrize("arguments", [("--debug", "fail", "value"), ("fail", "value", "--debug")])
def test_debug_shows_the_traceback(failing: Callable, arguments: tuple[str, ...]) -> None:
    result = failing(*arguments)
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.endswith("error: expected a, received b\n")


def test_debug_after_two_dashes_is_a_text(failing: Callable) -> None:
    assert "Traceback" not in failing("fail", "--", "--debug").stderr


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
    assert "┃" in drawn
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


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("--version >&-", 1, "error: standard output is closed\n"),
        ("--version 2>&-", 0, ""),
        ("absent 2>&-", 2, ""),
        ("similarity --file - <&-", 1, "error: standard input is closed\n"),
        ("--version >/dev/full", 1, f"error: standard output: {FULL}"),
    ],
)
def test_closed_and_full_descriptors_end_in_one_line(line: str, code: int, said: str) -> None:
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m use_st5 {line}', sys.executable],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_no_file_gets_the_number_of_a_closed_descriptor(tmp_path: Path) -> None:
    """What libraries write to standard error would end up in it."""
    code = (
        "from use_st5.cli.one_line_errors import open_standard_streams\n"
        "open_standard_streams()\n"
        "print(open('other', 'w').fileno(), file=open('number', 'w'))"
    )
    subprocess.run(
        ["sh", "-c", '"$0" -c "$1" <&- >&- 2>&-', sys.executable, code],
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        check=True,
    )
    assert int((tmp_path / "number").read_text()) > 2


@pytest.mark.process
def test_a_closed_pipe_is_no_error(fresh_python: Callable) -> None:
    """`use-st5 … | head -1`: the reader leaves, nothing is complained about."""
    code = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', '''\n"
        "import sys, numpy as np, use_st5\n"
        "class Fake:\n"
        "    def encode(self, texts, **options):\n"
        "        return np.ones((len(texts), 4), np.float32)\n"
        "    def truncated(self, texts):\n"
        "        return []\n"
        "use_st5.load = lambda name: Fake()\n"
        "sys.modules['tensorflow'] = None\n"
        "from use_st5.cli.main import main\n"
        "main()''', 'embed', '-']\n"
        "run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,\n"
        "                       stderr=subprocess.PIPE)\n"
        "run.stdout.close()\n"
        "run.stdin.write(b'text\\n' * 10_000)\n"
        "run.stdin.close()\n"
        "print(run.stderr.read().decode(), run.wait())\n"
    )
    assert fresh_python("-c", code) == " 1\n"


# The command line with a model that does, while it encodes, what the first argument names.
WHILE_ENCODING = """
import atexit, os, signal, sys, time, numpy, typer.main, use_st5
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupt(*ignored):
    signal.raise_signal(signal.SIGINT)
class Freed:
    __del__ = interrupt
def in_a_destructor():
    Freed()
    time.sleep(1)
def swallowed():
    try:
        interrupt()
    except:
        pass
def noise():
    os.write(2, b"noise\\n")
def another_error():
    swallowed()
    raise ValueError("None values not supported")
class Fake:
    name, dimension = "fake", 4
    def encode(self, texts, **options):
        globals().get(case, lambda: None)()
        return numpy.ones((len(texts), 4), numpy.float32)
    def similarity(self, vectors, **options):
        return vectors @ vectors.T
    def truncated(self, texts):
        return []
use_st5.load = lambda name: Fake()
sys.modules["tensorflow"] = None
case = sys.argv.pop(1)
if case == "before the command":
    typer.main.get_command = interrupt
if case == "after the command":
    os.waitpid = interrupt
if case == "at the end of the process":
    atexit.register(interrupt)
from use_st5.cli.main import main
main()
"""


def while_encoding(repository: Path, case: str, *arguments: str) -> tuple[int, str]:
    """Runs `use-st5 similarity` so, and gives the exit code and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", WHILE_ENCODING, case, "similarity", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(repository)},
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to a process")
@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        ("in_a_destructor", 130, "interrupted\n"),
        ("another_error", 130, "interrupted\n"),
        ("swallowed", 130, "interrupted\n"),
        ("before the command", 130, "interrupted\n"),
        ("after the command", 130, "interrupted\n"),
        ("at the end of the process", -2, ""),
    ],
)
def test_ctrl_c_ends_the_command_wherever_it_lands(
    case: str, code: int, said: str, repository: Path
) -> None:
    """Libraries swallow what is raised for it, or make another error of it."""
    assert while_encoding(repository, case, "a", "b") == (code, said)


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "said"), [(("--", "--debug", "b"), ""), (("a", "b", "--debug"), "noise\n")]
)
def test_what_native_code_says_is_heard_with_debug_alone(
    arguments: tuple[str, ...], said: str, repository: Path
) -> None:
    """After `--` it is a text."""
    assert while_encoding(repository, "noise", *arguments) == (0, said)


def test_the_installed_command_is_this_one() -> None:
    assert app.info.name == "use-st5"


@pytest.mark.parametrize(
    ("line", "heard"),
    [
        (["similarity", "a", "b"], False),
        (["similarity", "a", "b", "--debug"], True),
        (["similarity", "--", "a", "--debug"], False),  # a text
    ],
)
def test_native_output_is_heard_with_debug_alone(
    line: list[str], heard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    muted = []
    for name in ("open_standard_streams", "hear_every_interrupt"):
        monkeypatch.setattr(cli, name, lambda: None)
    monkeypatch.setattr(cli, "app", lambda prog_name: None)
    monkeypatch.setattr(
        cli, "native_stderr_unheard", lambda: contextlib.nullcontext(muted.append("native"))
    )
    monkeypatch.setattr("sys.argv", ["use-st5", *line])
    cli.main()
    assert muted == ([] if heard else ["native"])


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
    monkeypatch.setattr(_progress, "_LINE_EVERY", 0.01)
    monkeypatch.setattr(cli, "app", silent)
    cli.main()
    assert said[0] == "use-st5 info is at work, 0 s"
