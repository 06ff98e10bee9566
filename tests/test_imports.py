"""Importing the package: its cost, what it offers, and its messages if something is missing."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from use_st5._imports import require

HEAVY = ("tensorflow", "keras", "numpy", "scipy", "typer", "rich", "matplotlib")
OPTIONAL = (
    "apache_beam",
    "faiss",
    "gensim",
    "hypothesis",
    "jax",
    "keras_tuner",
    "matplotlib",
    "msgpack",
    "nltk",
    "sentencepiece",
    "sklearn",
    "tensorflow_datasets",
    "tensorflow_hub",
    "tensorflow_models",
    "tensorflow_text",
    "tf_keras",
    "torch",
    "transformers",
)
# Modules that need an optional package: if it is missing, their import says which line installs it.
MADE_OF_OPTIONAL = {
    "use_st5.beam.pipeline": "beam",
    "use_st5.serve.app": "serve",
    "use_st5.serve.connections": "serve",
    "use_st5.serve.middleware": "serve",
    "use_st5.sklearn": "evaluation",
}
# Scripts that `without_tensorflow.py` runs under JAX, and modules that they import in functions.
UNDER_JAX = (
    "tests/experiments/bundled_models/jax_run.py",
    "tests/experiments/sentence_t5/jax_run.py",
    "tests/experiments/trans_encoder/small.py",
    "tests/training/devices_run.py",
    "tests/training/jax_run.py",
    "tests/training/sharded_run.py",
    "use_st5/training/jax_loop.py",
)


@pytest.mark.process
def test_import_is_light(fresh_python: Callable[..., str]) -> None:
    code = "import use_st5, sys; print(sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(ast.literal_eval(fresh_python("-c", code)))
    assert "use_st5" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.process
@pytest.mark.parametrize(
    "command", [("similarity", "a cat", "a dog"), ("search", "texts.txt", "a cat")]
)
def test_a_query_is_answered_without_tensorflow(
    fresh_python: Callable[..., str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "texts.txt").write_text("a dog\na cat\n")
    code = f"""
import sys
from use_st5.cli.main import app
try:
    app({[*command, "--json"]})
except SystemExit as end:
    assert not end.code
assert not {{"tensorflow", "keras"}} & set(sys.modules)
"""
    assert '"model": "use_dan_en"' in fresh_python("-c", code)


@pytest.mark.parametrize("start", UNDER_JAX)
def test_training_under_jax_imports_no_tensorflow(start: str, repository: Path) -> None:
    """Follows the imports in the sources; `make test` leaves out the tests that train under JAX."""
    chains = {start: (start,)}
    waiting = [start]
    while waiting:
        file = waiting.pop()
        for name in _imported_at_once(ast.parse((repository / file).read_text("utf-8")).body):
            chain = *chains[file], name
            assert name.split(".")[0] not in ("tensorflow", "tf_keras"), " → ".join(chain)
            for found in _files_of(name, repository):
                if found not in chains:
                    chains[found] = chain
                    waiting.append(found)
    assert len(chains) > 1 or start.startswith("use_st5/")


def _imported_at_once(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that a module imports when it is imported itself, so none inside functions."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _imported_at_once(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imported_at_once(ast.iter_child_nodes(node))


def _files_of(name: str, repository: Path) -> Iterator[str]:
    """The files that run when a module is imported: its packages and itself."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        for file in (f"{path}/__init__.py", f"{path}.py"):
            if (repository / file).is_file():
                yield file


@pytest.mark.process
def test_every_module_imports_without_optional_packages(
    fresh_python: Callable[..., str],
) -> None:
    code = f"""
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
import use_st5
for module in pkgutil.walk_packages(use_st5.__path__, "use_st5."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        extra = {MADE_OF_OPTIONAL}.get(module.name)
        if extra is None or f"[{{extra}}]" not in str(error):
            raise
    print(module.name)
"""
    assert "use_st5.models.use_dan.model" in fresh_python("-c", code).split()


def test_require_says_which_line_installs() -> None:
    with pytest.raises(ImportError, match=r"no_such_module.*pip install .*\[hub\]\"") as info:
        require("no_such_module", "hub")
    assert info.value.name == "no_such_module"


def test_require_tells_why_a_broken_package_does_not_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_native.py").write_text("raise RuntimeError('undefined symbol: _ZN10')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="RuntimeError: undefined symbol: _ZN10") as info:
        require("broken_native", "text")
    assert isinstance(info.value.__cause__, RuntimeError)


@pytest.mark.end_to_end
@pytest.mark.process
@pytest.mark.parametrize("backend", ["tensorflow", "onnx", "onnx-int8"])
def test_a_plain_use_writes_only_into_the_cache(
    fresh_python: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
) -> None:
    """ONNX Runtime would write about this device, and queue it for sending.

    TensorFlow imports Keras, which writes its settings, and matplotlib, which lists fonts.
    """
    if backend != "tensorflow":
        pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
        pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    home = tmp_path / "home"
    for name in ("HOME", "TMPDIR"):
        (home / name).mkdir(parents=True)
        monkeypatch.setenv(name, str(home / name))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "ORT_DISABLE_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)
    code = f"""
import use_st5
for name in ("use_dan_en", "use_transformer_en"):
    assert use_st5.load(name, backend={backend!r}).encode(["How old are you?"]).shape[0] == 1
"""
    fresh_python("-c", code)
    written = {each.relative_to(home).parts[:3] for each in home.rglob("*") if each.is_file()}
    expected = {("HOME", ".cache", "use_st5")}
    if backend == "tensorflow":
        expected = {("HOME", ".keras", "keras.json"), ("HOME", ".cache", "matplotlib")}
    assert written <= expected
    assert {each.name for each in tmp_path.iterdir()} == {"home"}


def test_a_users_own_choice_about_telemetry_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    require("onnxruntime", "onnx")
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "0"
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    require("onnxruntime", "onnx")
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
