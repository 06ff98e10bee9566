from __future__ import annotations

from pathlib import Path

from use_st5.evaluation.data_folder import DataFolder
from use_st5.evaluation.glue.pair_task import PairTask
from use_st5.evaluation.glue.tasks import TASKS


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
