"""What a recipe is, before it is run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from experiments.bundled_models import use_dan_en
from use_st5.data.prepared_column import PreparedColumn
from use_st5.training.recipe import Examples, Run

RECIPE = use_dan_en.RECIPE


def test_some_tasks_of_a_recipe() -> None:
    some = RECIPE.only(["teacher", "inference"])
    assert some.tasks == ["inference", "teacher"], "in the recipe's order, which the draw goes by"
    assert some.only(()).tasks == []
    assert (some.expected, RECIPE.only(RECIPE.tasks)) == ({}, RECIPE)
    with pytest.raises(ValueError, match=r"among \['inference', 'teacher'\]. Received: \['talk'\]"):
        some.only(["talk"])


def test_equal_names_are_refused() -> None:
    (stage,) = RECIPE.stages
    with pytest.raises(ValueError, match="different names"):
        dataclasses.replace(RECIPE, stages=(stage, dataclasses.replace(stage, name="again")))


def test_folders_are_the_outputs_own_unless_given(tmp_path: Path) -> None:
    run = Run(RECIPE, tmp_path, tmp_path / "out")
    assert (run.teacher, run.prepared) == (tmp_path / "out/teacher", tmp_path / "out/prepared")
    given = Run(RECIPE, tmp_path, tmp_path, teacher_given=tmp_path / "t")
    assert given.teacher == tmp_path / "t"


def test_examples_are_read_late_and_filtered(tmp_path: Path) -> None:
    opened: list[Path] = []

    def read(data: Path) -> list[dict[str, str]]:
        opened.append(data)
        return [{"sentence": "A test."}, {"sentence": "A text."}]

    recipe = dataclasses.replace(RECIPE, held_out=lambda data: {"a test"})
    data = Examples(read, {"sentence": PreparedColumn("ids", max_tokens=3)})
    ((name, (examples, columns)),) = data.sources("mine", Run(recipe, tmp_path, tmp_path)).items()
    assert (name, columns, opened) == ("mine", data.columns, [])
    assert list(examples()) == [{"sentence": "A text."}]
    assert opened == [tmp_path]
