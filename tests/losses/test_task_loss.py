from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import numpy as np
import pytest

from use_st5.losses import task_loss
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task

# The base classes have no example.
LOSSES = sorted(
    path.stem
    for path in Path(task_loss.__file__).parent.glob("*_loss.py")
    if path.stem not in {"task_loss", "vector_loss"}
)


@pytest.mark.parametrize("name", LOSSES)
def test_the_example_of_a_docstring_runs(name: str) -> None:
    module = importlib.import_module(f"use_st5.losses.{name}")
    ids = np.arange(1, 41, dtype=np.int32).reshape(8, 5)
    there = {
        "ids": ids,
        "others": ids + 1,
        "labels": np.arange(8, dtype=np.int32) % 3,
        "scores": np.linspace(0, 1, 8, dtype=np.float32),
        "vectors": np.ones((8, 6), np.float32),
        "ArrayData": ArrayData,
        "ContrastiveLoss": ContrastiveLoss,
    }
    # The data of an example are smaller than the default batch of a task.
    there["Task"] = lambda name, loss, data: Task(name, loss, data, batch_size=4)
    failed, tried = doctest.testmod(module, extraglobs=there)
    assert (failed, tried) == (0, 3)


def test_an_example_that_does_not_fit_would_fail() -> None:
    data = ArrayData({"anchor": np.ones((8, 5), np.int32)})
    with pytest.raises(ValueError, match="'positive' is missing"):
        Task("pairs", ContrastiveLoss(), data).check_features()
