from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from use_st5.data.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.probing import tasks
from use_st5.evaluation.probing.tasks import TASKS, ProbingTask
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

TASK = ProbingTask("probing_toy", "probing", "Toy", "toy.txt")


def context(folder: Path) -> TaskContext:
    return TaskContext(
        VectorCache(lambda texts: np.array([[text.count(x) for x in "xy" * 64] for text in texts])),
        DataFolder(folder),
        seed=7,
    )


def write(folder: Path, name: str) -> None:
    (folder / "probing").mkdir()
    lines = [
        f"{part}\t{'NO' if n % 2 else 'YES'}\t{'xy'[n % 2]} {n % 9}"
        for part, count in (("tr", 200), ("va", 50), ("te", 40))
        for n in range(count)
    ]
    (folder / "probing" / name).write_text("\n".join(lines), encoding="utf-8")


def test_result(tmp_path: Path) -> None:
    write(tmp_path, "toy.txt")
    result = TASK.run(context(tmp_path))
    assert result.main == "accuracy"
    assert result.scores == {"accuracy": 1.0, "dev_accuracy": 1.0}
    assert result.counts == {"classes": 2, "train": 200, "dev": 50, "test": 40}
    assert result.details["classifier"]["seed"] == 7
    assert result.details["l2"] in (1e-5, 1e-4, 1e-3, 1e-2)
    json.dumps(result.details)


@pytest.mark.parametrize("file", ["toy.txt", "word_content.txt"])
def test_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """Word content stays with logistic regression, as in SentEval."""
    write(tmp_path, file)
    monkeypatch.setattr(tasks, "mlp_grid", lambda plain: [dataclasses.replace(plain, hidden_dim=9)])
    task = dataclasses.replace(TASK, file=file, mlp=True)
    units = task.run(context(tmp_path)).details["classifier"]["hidden_dim"]
    assert units == (9 if file == "toy.txt" else 0)
    assert task.options()["mlp_grid"] == (file == "toy.txt")
    assert ("50, 100 or 200 units" in task.protocol) == (file == "toy.txt")


def test_missing_data_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="expected probing/toy.txt .*SentEval"):
        TASK.run(context(tmp_path))


FILES = {
    "probing_length": "sentence_length.txt",
    "probing_word_content": "word_content.txt",
    "probing_depth": "tree_depth.txt",
    "probing_top_constituents": "top_constituents.txt",
    "probing_bigram_shift": "bigram_shift.txt",
    "probing_tense": "past_present.txt",
    "probing_subject_number": "subj_number.txt",
    "probing_object_number": "obj_number.txt",
    "probing_odd_man_out": "odd_man_out.txt",
    "probing_coordination_inversion": "coordination_inversion.txt",
}


def test_files_are_those_of_senteval() -> None:
    plain = {task.name: task.file for task in TASKS if task.group == "probing"}
    assert plain == FILES
    grid = {task.name: task.file for task in TASKS if task.group == "probing_mlp"}
    assert grid == {f"{name}_mlp": file for name, file in FILES.items()}


def test_the_grid_is_that_group_s_alone() -> None:
    for task in TASKS:
        wanted = task.group == "probing_mlp" and task.file != "word_content.txt"
        assert task.options()["mlp_grid"] == wanted
