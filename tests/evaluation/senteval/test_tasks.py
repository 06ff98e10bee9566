from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.evaluation.toys import BagOfWords
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.classifiers import SentEvalClassifier
from use_st5.evaluation.senteval import evaluate_transfer
from use_st5.evaluation.senteval.tasks import TASKS, TransferTask
from use_st5.evaluation.task import TaskContext
from use_st5.vector_store import VectorCache

ORIGINAL = [task for task in TASKS if task.group == "senteval"]
SKLEARN = [task for task in TASKS if task.group == "senteval_sklearn"]
MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


@pytest.fixture
def context(tmp_path: Path) -> TaskContext:
    """Small MRPC files: a pair is a paraphrase where both sentences are the same."""
    folder = tmp_path / "MRPC"
    folder.mkdir()
    for part, rows in (("train", 60), ("test", 24)):
        lines = [
            f"{row % 2}\t0\t0\tword{row % 7} a\tword{row % 7 if row % 2 else (row + 3) % 7} a\n"
            for row in range(rows)
        ]
        (folder / f"msr_paraphrase_{part}.txt").write_text(MRPC + "".join(lines))
    return TaskContext(VectorCache(BagOfWords().encode), DataFolder(tmp_path))


def mrpc(tasks: list[TransferTask]) -> TransferTask:
    return next(task for task in tasks if task.dataset.name == "MRPC")


def test_names_and_groups() -> None:
    names = ["mr", "cr", "subj", "mpqa", "sst2", "sst5", "trec", "mrpc", "sicke"]
    assert [task.name for task in ORIGINAL] == names
    assert [task.name for task in SKLEARN] == [f"{name}_sklearn" for name in names]
    assert len(TASKS) == 2 * len(names)
    assert [ORIGINAL[0].title, SKLEARN[0].title] == ["MR", "MR (sklearn)"]


def test_the_default_is_the_configuration_comparable_with_the_literature() -> None:
    expected = {
        "classifier": "senteval",
        "hidden_dim": 0,
        "optimizer": "adam",
        "batch_size": 64,
        "tenacity": 5,
        "epoch_size": 4,
        "max_epoch": 200,
        "folds": 10,
    }
    for task in ORIGINAL:
        assert expected.items() <= task.options().items()
        assert "SentEval's own classifier" in task.protocol
    assert mrpc(SKLEARN).options()["classifier"] == "sklearn"
    assert "scikit-learn's logistic regression" in mrpc(SKLEARN).protocol


@pytest.mark.parametrize(("tasks", "protocol"), [(ORIGINAL, "senteval"), (SKLEARN, "sklearn")])
def test_mrpc_has_accuracy_and_f1(
    context: TaskContext, tasks: list[TransferTask], protocol: str
) -> None:
    task = mrpc(tasks)
    result = task.run(context)
    data = task.dataset.read(context.data)
    score = evaluate_transfer(context.embed, data, classifier=task.classifier)
    assert result.main == "accuracy"
    assert result.scores == {"accuracy": score.accuracy, "f1": score.f1}
    assert result.counts == {"train": 60, "test": 24}
    assert result.details["classifier"] == protocol
    assert result.details["dev_accuracy"] == score.dev_accuracy > 0.5
    assert result.details["regularization"] == [*score.regularization]
    json.dumps(result.details)


def test_the_seed_is_that_of_the_run(context: TaskContext) -> None:
    seeds = []

    class Noting(SentEvalClassifier):
        def fit(self, *arguments: object, **more: object) -> list:
            seeds.append(self.seed)
            return super().fit(*arguments, **more)

    task = dataclasses.replace(mrpc(ORIGINAL), classifier=Noting(folds=2, max_epoch=4))
    task.run(dataclasses.replace(context, seed=3))
    assert set(seeds) == {3}
    assert "seed" not in task.options()


def test_sources_are_the_files_of_sentevals_layout() -> None:
    by_name = {task.name: task for task in ORIGINAL}
    places = {name: [source.places[0] for source in task.sources] for name, task in by_name.items()}
    assert places["mr"] == ["MR/rt-polarity.pos", "MR/rt-polarity.neg"]
    assert places["sst5"] == [f"SST/fine/sentiment-{part}" for part in ("train", "dev", "test")]
    assert places["trec"] == ["TREC/train_5500.label", "TREC/TREC_10.label"]
