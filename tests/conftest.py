"""What all tests share: the environment of the run, the real data and fresh processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Before any test imports TensorFlow, and inherited by every process that a test starts.
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "Agg")
# Without bytecode every `import tensorflow` of a fresh process takes half a minute.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the unpacked real data, or a skip that says how to give one."""
    value = os.environ.get("USE_ST5_DATA")
    if not value:
        pytest.skip("needs real data: set USE_ST5_DATA to the folder it is unpacked in")
    folder = Path(value)
    if not folder.is_dir():
        pytest.fail(f"USE_ST5_DATA names no folder: {folder}")
    return folder


@pytest.fixture
def fresh_python(tmp_path: Path) -> Callable[..., str]:
    """Runs Python in a fresh process, in an empty folder: `fresh_python("-c", code) -> stdout`.

    A failure shows what the process wrote. Tests that use it carry `@pytest.mark.process`.
    """

    def run(*arguments: str | os.PathLike[str], timeout: float = 300) -> str:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(
            [sys.executable, *map(os.fspath, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def written_elsewhere() -> Iterator[Callable[..., int]]:
    """Starts a process that is the sole writer of a path until the test ends; gives its id.

    Tests that use it carry `@pytest.mark.process`, though it takes less than a second.
    """
    code = (
        "import sys; from use_st5._files import sole_writer\n"
        "with sole_writer(sys.argv[1], inside=sys.argv[2] == 'True'):\n"
        "    print('writing', flush=True); sys.stdin.read()"
    )
    with contextlib.ExitStack() as processes:

        def start(path: str | os.PathLike[str], *, inside: bool) -> int:
            process = subprocess.Popen(
                [sys.executable, "-c", code, os.fspath(path), str(inside)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            )
            processes.enter_context(process)
            assert process.stdout.readline() == b"writing\n"
            return process.pid

        yield start
