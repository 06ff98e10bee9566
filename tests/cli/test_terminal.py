"""How commands end: one line for an error, the exit code of Ctrl-C, TensorFlow's silence."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import use_st5.__main__
from use_st5.cli.main import app
from use_st5.cli.terminal import OneLineErrors

FULL = "No space left on device; free some space, or write to another place\n"


@pytest.fixture
def failing() -> Callable:
    """A command line with one command, which raises the error that its argument names."""
    errors = {
        "value": ValueError("expected a,\nreceived b"),
        "key": KeyError("text"),
        "empty": OSError(),
        "interrupt": KeyboardInterrupt(),
        "end": EOFError("no data left"),
        "pipe": BrokenPipeError(),
        "full": OSError(errno.ENOSPC, "No space left on device", "out.npy"),
        "nameless": OSError(errno.ENOSPC, "No space left on device"),
        "copy": OSError(errno.ENOSPC, "No space left on device", "in.npy", None, "out.npy"),
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
        ("key", 1, "error: KeyError: 'text' (--debug shows the traceback)\n"),
        ("empty", 1, "error: OSError\n"),
        ("interrupt", 130, "interrupted\n"),
        ("end", 1, "error: expected more bytes in a file, found its end: no data left\n"),
        ("full", 1, f"error: out.npy: {FULL}"),
        ("nameless", 1, f"error: {FULL}"),
        ("copy", 1, f"error: out.npy: {FULL}"),
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


def test_ctrl_c_while_the_commands_are_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "use_st5.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "use_st5.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        use_st5.__main__.main()
    assert (end.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def test_it_is_said_while_the_line_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a command begins, only typer notices Ctrl-C, and prints nothing."""

    def make_context(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OneLineErrors, "make_context", make_context)
    result = CliRunner().invoke(app, ["similarity", "a", "b"])
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


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
    """Otherwise messages of libraries on standard error would end up in that file."""
    code = (
        "from use_st5.cli.terminal import open_standard_streams\n"
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
    """`use-st5 … | head -1`: the reader closes the pipe, and no error is printed."""
    code = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', '''\n"
        "import sys, numpy as np, use_st5\n"
        "class Fake:\n"
        "    prompts, default_prompt_name = {}, None\n"
        "    def encode(self, texts, **options):\n"
        "        return np.ones((len(texts), 4), np.float32)\n"
        "    def truncated(self, texts):\n"
        "        return []\n"
        "use_st5.load = lambda name, **options: Fake()\n"
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


# The command line with a model that, while it encodes, calls the function in the first argument.
WHILE_ENCODING = """
import atexit, os, signal, sys, time, numpy, typer.main, use_st5
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupt(*ignored):
    signal.raise_signal(signal.SIGINT)
def swallowed():
    try:
        interrupt()
    except:
        pass
def another_error():
    swallowed()
    raise ValueError("None values not supported")
class Fake:
    name, dimension = "fake", 4
    prompts, default_prompt_name = {}, None
    similarity_fn_name = "cosine"
    def encode(self, texts, **options):
        globals().get(case, lambda: None)()
        return numpy.ones((len(texts), 4), numpy.float32)
    def similarity(self, vectors, **options):
        return vectors @ vectors.T
    def truncated(self, texts):
        return []
use_st5.load = lambda name, **options: Fake()
sys.modules["tensorflow"] = None
case = sys.argv.pop(1)
if case == "before the command":
    typer.main.get_command = interrupt
if case == "at the end of the process":
    atexit.register(interrupt)
from use_st5.cli.main import main
main()
"""


def while_encoding(repository: Path, case: str, *arguments: str) -> tuple[int, str]:
    """Runs `use-st5 similarity` with this model; returns the exit code and standard error."""
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
        ("another_error", 130, "interrupted\n"),
        ("swallowed", 130, "interrupted\n"),
        ("before the command", 130, "interrupted\n"),
        ("at the end of the process", -2, ""),
    ],
)
def test_ctrl_c_ends_the_command_wherever_it_lands(
    case: str, code: int, said: str, repository: Path
) -> None:
    """Libraries may swallow the exception of Ctrl-C, or raise another error instead."""
    assert while_encoding(repository, case, "a", "b") == (code, said)


COMMANDS = (
    ("similarity", "a", "b"),
    ("embed", "texts.txt", "-o", "v.npy"),
    ("doctor",),
    ("info",),
    ("export", "use_dan_en", "--to", "wide", "--precision", "float32"),
    ("export", "wide", "--to", "narrow", "--precision", "int8"),
    ("evaluate", "use_transformer_en", "--tasks", "weat7", "--no-cache", "--out", "e.json"),
    ("benchmark", "use_dan_en", "--lengths", "5", "--seconds", "0.1"),
)
RUN = """
import json, sys
from use_st5.cli.main import main
for command in json.loads(sys.argv.pop()):
    sys.argv[1:] = command
    try:
        main()
    except SystemExit as end:
        print(command, end.code)
"""
OURS = (
    "v.npy: 2 rows of 512 (",
    "wide: ",
    "narrow: ",
    "1 of 1: weat7: effect_size ",
    "written: e.json",
)
# On a slow machine a command prints every ten seconds that it is at work.
SOMETIMES = re.compile(r", \d+ s$")


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize(
    ("gpus", "commands", "ours"), [("hidden", COMMANDS, OURS), ("seen", COMMANDS[:3], OURS[:1])]
)
def test_standard_error_holds_our_lines_alone(
    gpus: str, commands: Sequence, ours: Sequence[str], repository: Path, tmp_path: Path
) -> None:
    """This holds at TensorFlow's default log level, from its import to the end of the process."""
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    del environment["TF_CPP_MIN_LOG_LEVEL"]
    if gpus == "seen":
        del environment["CUDA_VISIBLE_DEVICES"]
    (tmp_path / "texts.txt").write_text("a\nb\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(commands)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    ended = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert ended == [f"{list(command)} 0" for command in commands], done.stdout + done.stderr
    heard = [line for line in done.stderr.splitlines() if not SOMETIMES.search(line)]
    assert [line[: len(start)] for line, start in zip(heard, ours, strict=True)] == list(ours)
