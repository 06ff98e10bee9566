"""Parts that all tests share: environment, real data, fresh processes, list of skipped tests."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.toy_encoders import (  # noqa: F401 (fixtures)
    toy,
    toy_bert,
    toy_kerashub,
    toy_modernbert,
    toy_mpnet,
    toy_static_embedding,
    toy_t5,
    toy_trigrams,
    toy_use_dan,
    toy_use_transformer,
)

# Set before any test imports TensorFlow; every process that a test starts inherits these settings.
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "Agg")
# XLA compiles toy models for a few steps: optimizations cost half of its time, and gain nothing.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
# Without bytecode every `import tensorflow` of a fresh process takes half a minute.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# On processors with AVX-512 TensorFlow uses oneDNN, whose pool of tensors doubles whenever it is
# full, and never frees memory: after the blocks of README.md a process held 2.5 GB with oneDNN and
# 1.2 GB without it. A step of .ci/run tests with oneDNN.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# By default Python's garbage collector would search the millions of objects of TensorFlow's graphs
# again and again: a seventh of the time of all tests.
gc.set_threshold(10_000, 20, 50)

REPOSITORY = Path(__file__).resolve().parents[1]

# The key in pytest's cache for the tests that the last run left out, so that another environment
# can run just these.
LEFT_OUT = "use_st5/left_out"
# The files that run first: those that take hundreds of MB for a moment, while the process is
# small; then the folders of the files that take a minute or more.
_FIRST = (
    (
        "tests/export/test_web.py",
        "tests/golden/",
        "tests/test_documents.py",
        "tests/hub/test_model_names.py",
        "tests/encode/test_options.py",
        "tests/test_shipped_models.py",
        "tests/test_sklearn.py",
        "tests/test_trainable_encoder.py",
    ),
    tuple(f"tests/{room}/" for room in ("experiments", "export", "models", "training")),
)
# The process may grow by this many bytes before it returns freed memory to the system. Next: its
# bytes in memory when it last did so, after a file of tests and after a test.
_GROWTH = 150_000_000
_clean_memory = {"file": 0, "test": 0}
_STARTED = time.monotonic()
_NO_TIME = "starts after --minutes"
_END_TO_END = "goes from end to end: --end-to-end runs it"


@pytest.fixture(scope="module", autouse=True)
def _memory_of_a_file_given_back() -> Iterator[None]:
    """Returns the memory that files of tests have freed to the system; glibc would keep gigabytes.

    Collecting all garbage takes a second or two, so this waits until the process has grown.
    """
    yield
    _forget()
    _forget_gradients()
    if _has_grown("file"):
        # Objects that survive are searched only here, not by every garbage collection.
        gc.unfreeze()
        _give_memory_back("file", "test")
        gc.freeze()


@pytest.fixture(autouse=True)
def _memory_of_a_test_given_back() -> Iterator[None]:
    """Does the same within a file, after tests that leave much memory behind."""
    _build_graphs_without_stacks()
    yield
    if _has_grown("test"):
        _forget()
        _give_memory_back("test")


def _has_grown(since: str) -> bool:
    resident = _resident_memory()
    return not resident or resident >= _clean_memory[since] + _GROWTH


def _give_memory_back(*after: str) -> None:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
    _clean_memory.update(dict.fromkeys(after, _resident_memory()))


def _build_graphs_without_stacks() -> None:
    """Keeps TensorFlow from recording a Python stack for each operation of a graph.

    XLA keeps the stacks of all that it compiles: a hundred megabytes for the tests of one loop.
    """
    if (session := sys.modules.get("tensorflow.python.client.pywrap_tf_session")) is not None:
        session.TF_SetOpStackTrace = lambda *_: None


def _forget() -> None:
    """Forgets what TensorFlow and use_st5 keep for later, though no test needs it again."""
    if (context := sys.modules.get("tensorflow.python.eager.context")) is not None:
        # TensorFlow keeps a kernel of 36 kB for the name of each variable that ever existed.
        context.context().clear_kernel_cache()
    if (encoder := sys.modules.get("use_st5.encode.encoder")) is not None:
        encoder._last.clear()


def _forget_gradients() -> None:
    """Forgets custom gradients, which a SavedModel that a file's tests share still needs.

    Each keeps its graph, so the graphs of all training steps would stay.
    """
    if (framework := sys.modules.get("tensorflow.python.framework.ops")) is not None:
        gradients = framework.gradient_registry._registry
        for name in [each for each in gradients if each.startswith("CustomGradient-")]:
            del gradients[name]


def _resident_memory() -> int:
    """Bytes of this process in memory; 0 if the system does not say."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(params=["mixed_bfloat16", "float16"])
def global_policy(request: pytest.FixtureRequest) -> Iterator[str]:
    """Sets each dtype policy of Keras in turn, and the default dtype of the last two."""
    import keras

    before = keras.config.floatx(), keras.config.dtype_policy()
    if not request.param.startswith("mixed_"):
        keras.config.set_floatx(request.param)
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_floatx(before[0])
    keras.config.set_dtype_policy(before[1])


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Returns the folder of the unpacked real data, or skips the test and says how to set it."""
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
def under_jax(
    fresh_python: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Runs a script of `tests` with Keras on JAX, while every import of TensorFlow fails.

    `under_jax("training/jax_run.py", *arguments) -> stdout`. Without JAX the test is skipped.
    """
    pytest.importorskip("jax", reason="the extra `jax` is not installed")

    def run(script: str, *arguments: str | os.PathLike[str]) -> str:
        monkeypatch.setenv("KERAS_BACKEND", "jax")
        tests = REPOSITORY / "tests"
        return fresh_python(
            tests / "without_tensorflow.py", tests / script, *arguments, timeout=900
        )

    return run


@pytest.fixture
def written_elsewhere() -> Iterator[Callable[..., int]]:
    """Starts a process that is the sole writer of a path until the test ends; returns its id.

    Tests that use it carry `@pytest.mark.process`, though it takes less than a second.
    """
    code = (
        "import sys; from use_st5.io.files import sole_writer\n"
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that also runs the end-to-end tests."""
    parser.addoption(
        "--end-to-end",
        action="store_true",
        help="run the tests marked `end_to_end`, too; a test named as FILE::TEST always runs",
    )
    parser.addoption(
        "--minutes", type=float, help="start no test later than this many minutes after the start"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves out the tests for which `--minutes` has no time."""
    minutes = item.config.getoption("minutes")
    if minutes is not None and time.monotonic() - _STARTED > 60 * minutes:
        pytest.skip(_NO_TIME)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the end-to-end tests, and starts with the largest and the longest files.

    The order changes only if several processes share the files: no long file then runs last. Tests
    that are named one by one keep the order in which they are named.
    """
    named = any("::" in argument for argument in config.args)
    if not named and not config.getoption("end_to_end"):
        for item in items:
            if "end_to_end" in item.keywords:
                item.add_marker(pytest.mark.skip(reason=_END_TO_END))
    if hasattr(config, "workerinput") and not named:
        items.sort(key=lambda item: [not item.nodeid.startswith(names) for names in _FIRST])


def pytest_collection_finish() -> None:
    """Excludes all objects that exist by now, such as imported modules, from garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints how many tests were skipped for which reason, and stores their names."""
    skipped = terminalreporter.stats.get("skipped", [])
    cache = getattr(terminalreporter.config, "cache", None)  # -p no:cacheprovider
    if cache is not None:
        cache.set(LEFT_OUT, sorted({report.nodeid for report in skipped}))
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} left out: {reason}")
