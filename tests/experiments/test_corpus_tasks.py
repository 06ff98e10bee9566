"""Tasks made of corpora: their parts, their arrays, and the steps of a pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.corpus_tasks import (
    CorpusTask,
    Examples,
    Material,
    open_tasks,
    prepare_tasks,
    steps_of_a_pass,
)
from experiments.run import TRIAL_STEPS, Run
from use_st5.data import PreparedColumn, arrays
from use_st5.losses import ClassificationLoss
from use_st5.training import ArrayData

TASK = CorpusTask(
    name="nli",
    loss=lambda: ClassificationLoss(num_classes=3),
    data=Examples(iter, {}),
    batch_size=8,
)


def of_size(rows: int) -> ArrayData:
    """Data with this number of rows, without content."""
    return ArrayData({"ids": np.zeros((rows, 2), np.int32)})


def test_examples_are_read_late_and_filtered(tmp_path: Path) -> None:
    opened: list[Path] = []

    def read(data: Path) -> list[dict[str, str]]:
        opened.append(data)
        return [{"sentence": "A test."}, {"sentence": "A text."}]

    data = Examples(read, {"sentence": PreparedColumn("ids", max_tokens=3)})
    ((name, (examples, columns)),) = data.sources("mine", Material(tmp_path, {"a test"})).items()
    assert (name, columns, opened) == ("mine", data.columns, [])
    assert list(examples()) == [{"sentence": "A text."}]
    assert opened == [tmp_path]


def test_parts_share_the_weight_by_their_weighted_sizes() -> None:
    parts = {"short": of_size(30), "long": of_size(5)}
    task = dataclasses.replace(TASK, weight=0.4, part_weights={"long": 2.0})
    weights = task.weights(parts)
    assert weights == pytest.approx({"short": 0.4 * 30 / 40, "long": 0.4 * 10 / 40})
    assert TASK.weights(parts) == {"short": 30, "long": 5}, "without a weight, the sizes"


def test_a_pass_is_made_up_to_whole_calls() -> None:
    arrays = {"nli": {"short": of_size(30), "long": of_size(5)}}
    assert steps_of_a_pass([TASK], arrays) == 10, "3 + 1 batches, in calls of ten steps"
    assert steps_of_a_pass([TASK], arrays, call=1) == 4


def test_a_trial_prepares_the_rows_of_its_steps_alone_and_finds_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "fingerprint", lambda tokenizer: {})
    read: list[int] = []

    def examples(data: Path) -> Iterator[dict[str, int]]:
        for row in range(1_000):
            read.append(row)
            yield {"label": row % 7}

    task = dataclasses.replace(TASK, data=Examples(examples, {"label": PreparedColumn("label")}))
    trial, whole = (Run(tmp_path, tmp_path, steps=steps) for steps in (20, TRIAL_STEPS))
    material: Any = Material(tmp_path, ())
    for _ in range(2):
        prepare_tasks(trial, [task], None, material)
        assert len(read) == 20 * 8
    of_trial = open_tasks(trial, [task])["nli"]["nli"].arrays["label"]
    with pytest.raises(FileNotFoundError, match=r"Expected prepared ids, .* --part prepare"):
        open_tasks(whole, [task])
    prepare_tasks(whole, [task], None, material)
    assert len(open_tasks(whole, [task])["nli"]["nli"]) == 1_000
    of_whole = open_tasks(trial, [task])["nli"]["nli"].arrays["label"]
    np.testing.assert_array_equal(of_trial, of_whole)
