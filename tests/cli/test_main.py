"""The command line as a whole: help, exit codes, one line for an error, TensorFlow's silence."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import use_st5.__main__
from use_st5.cli import main as cli
from use_st5.cli.main import OneLineErrors, app
from use_st5.hub.model_names import bundled_names
from use_st5.io import progress

FULL = "No space left on device\n"

NAMES = tuple(
    name for name, each in typer.main.get_command(app).commands.items() if not each.hidden
)


def plain(text: str) -> str:
    """Help without colours, frames and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", text).split())


def test_help_lists_every_command_and_the_exit_codes(use: Callable) -> None:
    result = use("--help")
    assert result.exit_code == 0
    text = plain(result.stdout)
    for command in NAMES:
        assert command in text
    assert "0 done, 1 failure, 2 wrong usage, 130 interrupted" in text
    assert f"models: {', '.join(bundled_names())}." in text


@pytest.mark.parametrize("command", NAMES)
def test_help_of_a_command_is_a_manual(use: Callable, command: str) -> None:
    for flag in ("--help", "-h"):
        result = use(command, flag)
        assert result.exit_code == 0
        text = plain(result.stdout)
        examples = text.split("Examples")[1]
        assert f"use-st5 {command}" in examples
        assert len(text) > 400


@pytest.mark.parametrize("arguments", [("embe",), ("embed", "--nonsense")])
def test_wrong_usage_is_one_line_and_2(use: Callable, arguments: tuple[str, ...]) -> None:
    result = use(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: No such")
    assert result.stderr.endswith("--help`.\n")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_tensorflow_that_does_not_load_is_one_line_with_the_next_step(
    use: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)

    def fail(name: str) -> None:
        raise RuntimeError(f"no {name}\ntoday")

    monkeypatch.setattr("use_st5.cli.models.importlib.import_module", fail)
    result = use("similarity", "a", "b", "--backend", "tensorflow")
    assert result.exit_code == 1
    assert "RuntimeError: no tensorflow today" in result.stderr
    assert "use-st5 doctor" in result.stderr
    assert result.stderr.count("\n") == 1


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


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        # A file that is opened later must not get the number of standard error.
        ("--version 2>&- >/dev/full", 1, ""),
        ("--version <&- >/dev/full", 1, f"error: {FULL}"),
        ("absent 2>&-", 2, ""),
    ],
)
def test_closed_and_full_descriptors_end_in_one_line(
    line: str, code: int, said: str, repository: Path
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m use_st5 {line}', sys.executable],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(repository)},
        check=False,
    )
    # Whether the stream breaks again when it is flushed, and is named, depends on its buffer.
    assert (done.returncode, done.stderr.replace("standard output: ", "")) == (code, said)


# The command line with a model that, while it encodes, calls the function in the first argument.
WHILE_ENCODING = """
import atexit, os, signal, sys, time, numpy, use_st5
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
        ("at the end of the process", -2, ""),
    ],
)
def test_ctrl_c_ends_the_command_wherever_it_lands(
    case: str, code: int, said: str, repository: Path
) -> None:
    """Libraries may swallow the exception of Ctrl-C, or raise another error instead."""
    assert while_encoding(repository, case, "a", "b") == (code, said)


@pytest.mark.process
def test_a_closed_pipe_is_no_error(repository: Path) -> None:
    """`use-st5 … | head -1`: the reader closes the pipe, and no error is printed."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    command = [sys.executable, "-c", WHILE_ENCODING, "quietly", "embed", "-"]
    with subprocess.Popen(command, env=environment, **pipes) as run:
        run.stdout.close()
        run.stdin.write(b"text\n" * 10_000)
        run.stdin.close()
        assert (run.stderr.read(), run.wait()) == (b"", 1)


RUN_IN_TURN = (
    ("similarity", "a", "b"),
    ("embed", "texts.txt", "-o", "v.npy"),
    ("doctor",),
    ("export", "use_dan_en", "--to", "wide", "--precision", "float32"),
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
OURS = ("v.npy: 2 rows of 512 (", "wide: ")
# On a slow machine a command prints every ten seconds that it is at work.
SOMETIMES = re.compile(r", \d+ s$")


@pytest.mark.end_to_end
@pytest.mark.process
def test_standard_error_holds_our_lines_alone(repository: Path, tmp_path: Path) -> None:
    """This holds at TensorFlow's default log level, from its import to the end of the process."""
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    del environment["TF_CPP_MIN_LOG_LEVEL"]
    del environment["CUDA_VISIBLE_DEVICES"]
    (tmp_path / "texts.txt").write_text("a\nb\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(RUN_IN_TURN)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    ended = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert ended == [f"{list(command)} 0" for command in RUN_IN_TURN], done.stdout + done.stderr
    heard = [line for line in done.stderr.splitlines() if not SOMETIMES.search(line)]
    assert [line[: len(start)] for line, start in zip(heard, OURS, strict=True)] == list(OURS)


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
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.01)
    monkeypatch.setattr(cli, "app", silent)
    cli.main()
    assert said[0] == "use-st5 info is running, 0 s"


# TensorFlow imports packages that no command uses if they can be imported.
LIGHT_START = """
import sys
from use_st5.cli.models import start_tensorflow
start_tensorflow()
assert not {"sklearn", "pandas", "jax", "matplotlib"} & {*sys.modules}
import keras, sklearn.linear_model
assert keras.backend.backend() == "tensorflow"
"""


def test_a_command_starts_tensorflow_without_what_it_does_not_need() -> None:
    subprocess.run([sys.executable, "-c", LIGHT_START], check=True)
