from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from use_st5.cli.native_stderr import last_words

ABSL = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
LOOP = "W0000 00:00:1795330164.637374    6658 loop_optimizer.cc:934] Skipping loop optimization\n"
OLDER = "2026-11-22 06:50:28.585564: E external/cuda_platform.cc:51] failed call to cuInit\n"


TWICE = "LLVM ERROR: an option was registered twice\n"
TERMINATE = "terminate called after throwing 'std::bad_alloc'\n  what():  std::bad_alloc\n"
ABORTED = "Fatal Python error: Aborted\n\nCurrent thread 0x7f (most recent call first):\n  File x"
FAILED = "F0000 00:00:1795330164.637374 6658 a.cc:1] Check failed: x\n"


@pytest.mark.parametrize(
    ("written", "last"),
    [
        ("", ""),
        (ABSL + LOOP + OLDER, ""),
        (LOOP + TWICE + OLDER, TWICE.strip()),
        (
            TERMINATE + ABORTED,
            "terminate called after throwing 'std::bad_alloc' what(): std::bad_alloc "
            "Fatal Python error: Aborted",
        ),
        (FAILED, " ".join(FAILED.split())),
    ],
)
def test_last_words_are_what_is_no_log_line(written: str, last: str) -> None:
    assert last_words(written) == last


# Noise of a library, a line of ours, and then the end that the argument names.
ENDS = f"""
import ctypes, os, signal, sys
from use_st5.cli.native_stderr import native_stderr_unheard
ends = {{
    "regular": lambda: None,
    "abort": os.abort,
    "exit": lambda: ctypes.CDLL(None).exit(1),
    "crash": lambda: ctypes.string_at(0),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "error": lambda: sys.exit("error: ours"),
}}
with native_stderr_unheard():
    os.write(2, {LOOP!r}.encode())
    print("news", file=sys.stderr)
    if sys.argv[1] in ("abort", "exit"):
        os.write(2, b"its cause\\n")
    ends[sys.argv[1]]()
os.write(2, b"torn down\\n")
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("end", "heard"),
    [
        ("regular", ""),
        ("killed", ""),
        ("error", "error: ours"),
        ("abort", "its cause Fatal Python error: Aborted"),
        ("exit", "its cause"),
        ("crash", "Fatal Python error: Segmentation fault"),
    ],
)
def test_only_an_end_by_native_code_is_heard(repository: Path, end: str, heard: str) -> None:
    """What Python says always; what a library says only if it ends the process, as one line."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS, end],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    news, _, rest = done.stderr.partition("\n")
    assert news == "news"
    assert heard in rest
    assert rest.count("\n") == bool(heard)


COMMANDS = (
    ("similarity", "a", "b"),
    ("embed", "texts.txt", "-o", "v.npy"),
    ("doctor",),
    ("info",),
    ("export", "use_dan_en", "--to", "wide", "--precision", "float32"),
    ("export", "wide", "--to", "narrow", "--precision", "int8"),
    ("evaluate", "use_transformer_en", "--tasks", "weat7", "--no-cache", "--out", "e.json"),
    ("benchmark", "use_dan_en", "--lengths", "5", "--repeats", "1", "--no-plots"),
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
    "written: benchmark/resources.json",
)
# A slow machine is told every ten seconds that a command is at work. Without oneDNN, TensorFlow
# does not count memory, and `benchmark` says so.
SOMETIMES = re.compile(r", \d+ s$|^Memory is unknown ")


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize(
    ("gpus", "commands", "ours"), [("hidden", COMMANDS, OURS), ("seen", COMMANDS[:3], OURS[:1])]
)
def test_standard_error_holds_our_lines_alone(
    gpus: str, commands: Sequence, ours: Sequence[str], repository: Path, tmp_path: Path
) -> None:
    """At TensorFlow's own level of logging, from its import to the end of the process."""
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
