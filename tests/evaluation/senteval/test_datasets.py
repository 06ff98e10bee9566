from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from use_st5.evaluation.data_folder import DataFolder, MissingDataError
from use_st5.evaluation.senteval import datasets
from use_st5.evaluation.senteval.transfer_dataset import TransferDataset


@pytest.mark.parametrize(
    ("dataset", "counts", "classes"),
    [
        (datasets.MR, {"train": 10662}, {0: 5331, 1: 5331}),
        (datasets.SUBJ, {"train": 10000}, {0: 5000, 1: 5000}),
        (datasets.SST2, {"train": 67349, "dev": 872, "test": 1821}, {0: 29780, 1: 37569}),
        (
            datasets.SST5,
            {"train": 8544, "dev": 1101, "test": 2210},
            {0: 1092, 1: 2218, 2: 1624, 3: 2322, 4: 1288},
        ),
        (
            datasets.TREC,
            {"train": 5452, "test": 500},
            {0: 86, 1: 1162, 2: 1250, 3: 1223, 4: 835, 5: 896},
        ),
        (datasets.MRPC, {"train": 4076, "test": 1725}, {0: 1323, 1: 2753}),
        (
            datasets.SICK_E,
            {"train": 4500, "dev": 500, "test": 4927},
            {0: 665, 1: 2536, 2: 1299},
        ),
    ],
    ids=lambda value: value.name if isinstance(value, TransferDataset) else "",
)
def test_real_files_have_the_published_counts(
    data_dir: Path, dataset: TransferDataset, counts: dict[str, int], classes: dict[int, int]
) -> None:
    found = dataset.read(DataFolder(data_dir)).parts()
    assert {part: len(samples) for part, samples in found.items()} == counts
    assert Counter(sample.label for sample in found["train"]) == classes
    pairs = {len(sample.sentences) for samples in found.values() for sample in samples}
    assert pairs == {2 if dataset in (datasets.MRPC, datasets.SICK_E) else 1}


def test_subjective_sentences_are_class_0_and_objective_ones_follow_class_1(data_dir: Path) -> None:
    # senteval/binary.py calls the objective file "pos".
    train = datasets.SUBJ.read(DataFolder(data_dir)).train
    assert train[0].sentences[0].startswith("the movie begins in the past")
    assert (train[0].label, train[-1].label) == (1, 0)


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "CR").mkdir()
    (tmp_path / "CR" / "custrev.pos").write_text("good\n")
    with pytest.raises(
        MissingDataError, match=r"CR/custrev\.neg.*Get it from https://www\.cs\.uic"
    ):
        datasets.CR.read(DataFolder(tmp_path))
    (tmp_path / "CR" / "custrev.neg").write_text("bad\nworse\n")
    assert [sample.label for sample in datasets.CR.read(DataFolder(tmp_path)).train] == [1, 0, 0]
