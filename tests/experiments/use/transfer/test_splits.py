"""The parts of the data that the transfer tables train, tune and test on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.use.transfer.splits import TASKS, split
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.labelled_texts import LabelledTexts


def samples(count: int, prefix: str = "text") -> LabelledTexts:
    """Texts, of which every third is of class 1."""
    rows = range(count)
    return LabelledTexts(
        ([f"{prefix} {row}" for row in rows],), np.array([int(row % 3 == 0) for row in rows])
    )


def classes(part: LabelledTexts) -> list[int]:
    return np.bincount(part.labels, minlength=2).tolist()


def test_repeats_without_test_part_are_a_cross_validation() -> None:
    data = {"train": samples(300)}
    splits = [split(data, repeat, seed=0) for repeat in range(10)]
    tested = [text for part in splits for text in part.test.columns[0]]
    for part in splits:
        assert part.dev.columns[0] == splits[0].dev.columns[0]
        every = [*part.train.columns[0], *part.dev.columns[0], *part.test.columns[0]]
        assert sorted(every) == sorted(data["train"].columns[0])
        assert classes(part.dev) == [20, 10]
        assert classes(part.test) == [18, 9]
        assert all(
            part.train.labels[row] == (int(text.split()[1]) % 3 == 0)
            for row, text in enumerate(part.train.columns[0])
        )
    assert sorted([*tested, *splits[0].dev.columns[0]]) == sorted(every)
    assert len({part.number for part in splits}) == 10
    assert split(data, 10, seed=0).test.columns[0] == splits[0].test.columns[0]
    assert split(data, 0, seed=1).dev.columns[0] != splits[0].dev.columns[0]


def test_test_part_is_the_same_in_all_repeats() -> None:
    data = {"train": samples(60), "test": samples(9, "test")}
    first, second = (split(data, repeat, seed=0) for repeat in (0, 5))
    assert first.number == second.number
    assert first.train.columns[0] == second.train.columns[0]
    assert (len(first.train), len(first.dev)) == (54, 6)
    assert first.test.columns[0] == [f"test {row}" for row in range(9)]


def test_examples_are_drawn_anew_for_each_repeat() -> None:
    data = {"train": samples(60), "dev": samples(6, "dev"), "test": samples(9, "test")}
    first, second = (split(data, repeat, seed=0, examples=20) for repeat in (0, 1))
    assert first.number != second.number
    assert len(set(first.train.columns[0])) == 20
    assert set(first.train.columns[0]) != set(second.train.columns[0])
    assert first.dev.columns[0] == [f"dev {row}" for row in range(6)]
    assert split(data, 1, seed=0, examples=20).train.columns[0] == second.train.columns[0]
    with pytest.raises(ValueError, match="at least 61 training texts, found 60"):
        split(data, 0, seed=0, examples=61)


@pytest.mark.parametrize(
    ("task", "counts"),
    [
        ("trec", (4906, 546, 500)),
        ("sst2_4000", (4000, 872, 1821)),
        ("mr", (8635, 1067, 960)),
        ("subj", (8100, 1000, 900)),
    ],
)
def test_real_tasks(task: str, counts: tuple[int, ...], data_dir: Path) -> None:
    dataset, examples = TASKS[task]
    found = split(dataset.read(DataFolder(data_dir)), 0, seed=0, examples=examples)
    assert tuple(len(part) for part in (found.train, found.dev, found.test)) == counts
