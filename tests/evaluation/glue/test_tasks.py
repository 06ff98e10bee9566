from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from use_st5.data.data_folder import DataFolder, DataSource, MissingDataError
from use_st5.evaluation.glue.readers import GlueDataset, TableLayout
from use_st5.evaluation.glue.tasks import TASKS, PairTask, SentGlueTask
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


TASK = PairTask(
    "pairs_toy",
    "Toy",
    DataSource("Toy dev", ("Toy/dev.tsv",), "nowhere: a test makes it"),
    TableLayout((0, 1), 2, ("entailment", "not_entailment")),
    positive="entailment",
    split="all but the first pair",
    skipped=1,
)


def test_result(tmp_path: Path) -> None:
    (tmp_path / "Toy").mkdir()
    lines = ["a\tb\tentailment", "a\ta\t0", "a\tb\tnot_entailment", "b\tb\t1", "c\tc\tentailment"]
    (tmp_path / "Toy" / "dev.tsv").write_text("\n".join(lines), encoding="utf-8")
    embed = VectorCache(lambda texts: np.eye(3)[["abc".index(text) for text in texts]])
    result = TASK.run(TaskContext(embed, DataFolder(tmp_path)))
    # Two positive pairs of cosine 1 against one of 0 and one of 1: two wins, two ties.
    assert result.scores == {"auc": pytest.approx(3 / 4)}
    assert result.counts == {"pairs": 4, "positive": 2, "broken_lines": 0}


def test_what_a_record_says_of_pairs() -> None:
    assert "positive class “entailment”, all but the first pair" in TASK.protocol
    assert json.loads(json.dumps(TASK.options())) == TASK.options()


def test_names_and_main_scores() -> None:
    """In the order of table 6 of Sentence-T5 and table 2 of Trans-Encoder."""
    mains = {task.name: task.metrics[0] for task in TASKS if task.group == "sentglue"}
    assert mains == {
        "sentglue_cola": "matthews",
        "sentglue_sst2": "accuracy",
        "sentglue_mrpc": "accuracy",
        "sentglue_stsb": "pearson",
        "sentglue_qqp": "accuracy",
        "sentglue_mnli_m": "accuracy",
        "sentglue_mnli_mm": "accuracy",
        "sentglue_qnli": "accuracy",
        "sentglue_rte": "accuracy",
    }
    assert [task.name for task in TASKS if task.group == "pairs"] == [
        "pairs_qqp",
        "pairs_qnli",
        "pairs_mrpc",
    ]
    assert len({task.title for task in TASKS if task.group == "sentglue"}) == 9


def test_features_fit_the_data() -> None:
    for task in TASKS:
        if task.group == "sentglue":
            texts = {len(layout.texts) for layout in task.dataset.layouts}
            assert texts == ({1} if task.features == "u" else {2})


def test_positive_classes_are_those_of_the_data() -> None:
    for task in TASKS:
        if isinstance(task, PairTask):
            assert task.positive in task.layout.classes


def test_real_mrpc(data_dir: Path) -> None:
    """The counts of the corpus's readme: 1,725 test pairs, 1,147 of them equivalent."""
    task = next(task for task in TASKS if task.name == "pairs_mrpc")
    pairs = task.layout.read(DataFolder(data_dir).find(task.source))
    assert (len(pairs), int(pairs.labels.sum())) == (1725, 1147)
