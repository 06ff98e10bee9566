"""What every recipe does with its output folder."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from use_st5.recipes._run_folder import checkpoints_folder

from use_st5 import recipes

RECIPES = sorted(path.stem for path in Path(recipes.__file__).parent.glob("[!_]*.py"))


@pytest.mark.process
def test_no_recipe_runs_where_another_process_writes(
    tmp_path: Path, written_elsewhere: Callable[..., int]
) -> None:
    written_elsewhere(tmp_path / "run", inside=True)
    for name in RECIPES:
        with pytest.raises(BlockingIOError, match="is being written by process"):
            importlib.import_module(f"use_st5.recipes.{name}").run(tmp_path, tmp_path / "run")


def test_what_the_export_would_replace_is_looked_at_first(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    checkpoints_folder(tmp_path, resume=True)
    (tmp_path / "model" / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError, match=r"Found thesis\.txt"):
        checkpoints_folder(tmp_path, resume=True)
