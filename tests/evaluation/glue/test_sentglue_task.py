from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.glue.glue_dataset import GlueDataset
from use_st5.evaluation.glue.sentglue_task import SentGlueTask
from use_st5.evaluation.glue.table_layout import TableLayout
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

TOY = GlueDataset(
    "Toy",
    ("Toy/train.tsv",),
    ("Toy/dev.tsv",),
    (TableLayout((0,), 1, ("no", "yes"), most_broken=1),),
)
GRADED = GlueDataset("Graded", ("Toy/train.tsv",), ("Toy/dev.tsv",), (TableLayout((0, 1), 2),))


def context(folder: Path) -> TaskContext:
    """Embeddings are the numbers of letters x and y, 64 times each."""
    return TaskContext(
        VectorCache(lambda texts: np.array([[text.count(x) for x in "xy" * 64] for text in texts])),
        DataFolder(folder),
        seed=7,
    )


def write(folder: Path, name: str, lines: list[str]) -> None:
    (folder / "Toy").mkdir(exist_ok=True)
    (folder / "Toy" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_classes(tmp_path: Path) -> None:
    rows = [f"{'yx'[n % 2]} {n % 7}\t{('no', 'yes')[n % 2]}" for n in range(200)]
    write(tmp_path, "train.tsv", [*rows, "broken"])
    write(tmp_path, "dev.tsv", rows[:10])
    task = SentGlueTask("sentglue_toy", TOY, ("matthews", "accuracy"), "u")
    result = task.run(context(tmp_path))
    assert result.main == "matthews"
    assert result.scores == {"matthews": 1.0, "accuracy": 1.0}
    assert result.counts == {"train": 200, "dev": 10, "broken_lines": 1}
    assert result == task.run(context(tmp_path))


def test_scores(tmp_path: Path) -> None:
    rows = [f"{'x' * (n % 6)}.\t.\t{n % 6 * 0.9}" for n in range(120)]
    write(tmp_path, "train.tsv", 3 * rows)
    write(tmp_path, "dev.tsv", rows[:12])
    task = SentGlueTask("sentglue_graded", GRADED, ("pearson", "spearman"), "u, v, |u − v|, u·v")
    result = task.run(context(tmp_path))
    assert result.main == "pearson"
    assert result.scores["pearson"] > 0.9
    assert result.scores["spearman"] == pytest.approx(1.0)


def test_what_a_record_says() -> None:
    classes = SentGlueTask("a", TOY, ("accuracy",), "u")
    assert classes.title == "Toy"
    assert "accuracy on GLUE's dev split; SentEval's logistic regression" in classes.protocol
    assert "5 % choose the L2 factor" in classes.protocol
    assert classes.options()["optimizer"] == "adam"
    graded = SentGlueTask("b", GRADED, ("pearson",), "u, v")
    assert "soft labels 0 … 5" in graded.protocol
    assert "the other 5 % decide when to stop" in graded.protocol
    assert json.loads(json.dumps(graded.options())) == graded.options()


def test_a_missing_split(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", ["a\tno"])
    task = SentGlueTask("a", TOY, ("accuracy",), "u")
    with pytest.raises(MissingDataError, match="GLUE Toy dev: expected Toy/dev.tsv"):
        task.run(context(tmp_path))
