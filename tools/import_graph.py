"""Which file of the checkout imports which."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_OURS = ("use_st5", "experiments", "benchmarks", "tools", "tests")


def python_files(*folders: str) -> set[str]:
    """Lists the Python files on disk below folders of the checkout, relative to it."""
    files = (path.relative_to(ROOT) for name in folders for path in (ROOT / name).rglob("*.py"))
    return {path.as_posix() for path in files if ".ipynb_checkpoints" not in path.parts}


def run_time_tree(file: str) -> ast.Module:
    """The syntax tree of a file, without the imports that are only for type checkers."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    return tree


@functools.cache
def imported_files(source: str) -> frozenset[str]:
    """The files of the checkout that a file's import statements name, those in functions too."""
    modules = set()
    for node in ast.walk(run_time_tree(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return _files(modules)


@functools.cache
def named_files(source: str) -> frozenset[str]:
    """The files that a file imports, or names as a string, such as `"use_st5.cli.train"`."""
    strings = {
        node.value
        for node in ast.walk(run_time_tree(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    dotted = {text for text in strings if re.fullmatch(r"\w+(\.\w+)*", text)}
    return imported_files(source) | _files(dotted)


def _files(modules: set[str]) -> frozenset[str]:
    stems = {name.replace(".", "/") for name in modules if name.split(".")[0] in _OURS}
    return frozenset(
        stem + end
        for stem in stems
        for end in (".py", "/__init__.py")
        if (ROOT / (stem + end)).is_file()
    )
