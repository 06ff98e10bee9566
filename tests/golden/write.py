"""Writes the stored values again: `python -m tests.golden.write [vectors trainings …]`.

Use this only if a change of behaviour is intended; the diff then shows the change.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tests.conftest  # noqa: F401  (the environment of the tests)
from tests.golden import evaluations, mistakes, trainings, vectors

VALUES = Path(__file__).parent


def read(name: str) -> dict[str, Any]:
    """The values that are stored under a name."""
    return json.loads((VALUES / f"{name}.json").read_text(encoding="utf-8"))


def _vectors() -> dict[str, Any]:
    found: dict[str, Any] = {name: vectors.bundled(name) for name in vectors.BUNDLED}
    if (folder := vectors.minilm_folder()) is not None:
        found["all-MiniLM-L6-v2"] = vectors.minilm(folder)
    for name, toy in vectors.TOYS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = toy(Path(folder))
    return found


def _trainings() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        trainings.write_files(Path(folder))
        return {name: trainings.trained(name, Path(folder)) for name in trainings.TRAININGS}


def _evaluations() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        evaluations.write_data(Path(folder))
        return evaluations.scores(Path(folder))


def _write_mistakes() -> None:
    commands, before = mistakes.commands(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        mistakes.write_files(Path(folder))
        table = "\n".join(map(mistakes.told, commands))
        os.chdir(before)
    mistakes.TABLE.write_text(table, encoding="utf-8")


_PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "vectors": _vectors,
    "trainings": _trainings,
    "evaluations": _evaluations,
}


def _lines(values: dict[str, Any]) -> str:
    """JSON with a line for each value of the two outer levels."""
    outer = []
    for name, inner in values.items():
        rows = inner.items() if isinstance(inner, dict) else [("values", inner)]
        lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in rows)
        outer.append(f"  {json.dumps(name)}: {{\n{lines}\n  }}")
    return "{\n" + ",\n".join(outer) + "\n}\n"


if __name__ == "__main__":
    asked = sys.argv[1:] or [*_PARTS, "mistakes"]
    for part, make in _PARTS.items():
        if part in asked:
            (VALUES / f"{part}.json").write_text(_lines(make()), encoding="utf-8")
    if "mistakes" in asked:
        _write_mistakes()
