"""Arguments of `use_st5.train` of wrong types: each error says what to give instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import use_st5
from use_st5.training.arguments import make_arguments


class Strange:
    """A type that no argument accepts."""


ROW = {"anchor": "a", "positive": "b"}
IN_MEMORY = "Rows are a DataFrame, an Arrow table or a list of dicts"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": Strange()}, r"model: expected a name, .* received a Strange\. Give the name"),
        ({"model": None}, "model: expected a name, .* received None"),
        ({"files": [3]}, f"files: expected a file's name, rows, .* a list of int. {IN_MEMORY}"),
        ({"files": ROW}, f"files: .* received a dict. {IN_MEMORY}"),
        ({"files": Strange()}, f"files: .* received a Strange. {IN_MEMORY}"),
        ({"files": iter(["a.tsv"])}, "files: .* or a list of these, received a list_iterator"),
        ({"files": [["a", "b"]]}, "files: .* received a list of list"),
        ({"validation": ROW}, f"validation: .* received a dict. {IN_MEMORY}"),
        ({"test": None}, "test: .* received None"),
        ({"to": 3}, "to: expected a folder, received 3"),
        ({"to": None}, "to: expected a folder, received None"),
        ({"task": 1}, "task: expected a task's name or .* received 1. Give one task"),
        ({"task": {"a.tsv": 1}}, "task: .* received a dict. Give one task"),
        ({"columns": ["anchor"]}, r"columns: expected a mapping .* received a list of str\. Give"),
        ({"columns": "anchor"}, "columns: .* received 'anchor'. Give {key: the file's own name}"),
        ({"settings": {"epochs": 1}}, "settings: expected a name, received a dict. Give a paper's"),
        (
            {"settings": make_arguments()},
            "settings: expected a name, received a FileArguments",
        ),
        ({"overwrite": "no"}, "overwrite: expected True or False, received 'no'"),
        ({"strategy": Strange()}, "strategy: .* received a Strange. Give its name: one, mirrored"),
        ({"batch_files": 3}, "batch_files: expected a folder, received 3"),
        ({"log": None}, "log: expected a function, received None. Give a function of one"),
        ({"epochs": "3"}, "epochs: expected a number, received '3'"),
        ({"steps": 10.0}, "steps: expected a whole number or None, received 10.0"),
        ({"steps": True}, "steps: expected a whole number or None, received True"),
        ({"batch_size": "64"}, "batch_size: expected a whole number, received '64'"),
        ({"batch_size": None}, "batch_size: expected a whole number, received None"),
        (
            {"micro_batch_size": 0.5},
            "micro_batch_size: expected a whole number or None",
        ),
        ({"learning_rate": Strange()}, "learning_rate: .* received a Strange. Give the peak"),
        ({"optimizer": Strange()}, r"optimizer: .* Strange\. Give its name, .*Trainer"),
        ({"schedule": Strange()}, "schedule: .* Strange. Give its name, linear or constant"),
        ({"loss": Strange()}, "loss: expected a mapping or a TaskLoss, .* Give a TaskLoss, or"),
        ({"loss": "cosent"}, "loss: expected a mapping or a TaskLoss, received 'cosent'"),
        (
            {"matryoshka_dimensions": 64},
            "matryoshka_dimensions: .* received 64. Give a tuple",
        ),
        (
            {"matryoshka_dimensions": (0.5,)},
            "dimensions: expected a tuple, each a whole number",
        ),
        ({"freeze": "embedding"}, r"freeze: .* received 'embedding'. Give a tuple"),
        ({"score_range": "0,5"}, "score_range: .* received '0,5'. Give the lowest"),
        ({"teacher": Strange()}, "teacher: .* received a Strange. Give its name or folder"),
        ({"seed": None}, "seed: expected a whole number, received None"),
        ({"dropout": "0.1"}, "dropout: expected a number or None, received '0.1'"),
        ({"precision": 8}, "precision: expected text or None, received 8"),
    ],
)
def test_a_wrong_type_is_a_type_error_that_helps(given: dict[str, Any], message: str) -> None:
    """The types are checked before any file is read; here there is no file."""
    arguments = {"model": "use_dan_en", "files": "none.tsv", "to": "m", **given}
    with pytest.raises(TypeError, match=message):
        use_st5.train(**arguments)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "callback",
            "callback: Give callbacks, a list.",
        ),
        ("lr_scheduler", "lr_scheduler: Give the peak"),
        ("train_dataset", f"train_dataset: Give files. {IN_MEMORY}"),
        ("validation_data", "validation_data: Give files as validation"),
        ("lr", "lr: Give learning_rate"),
        ("storage", "storage: Give precision"),
        ("epoch", r"Unknown arguments \['epoch'\]. Known are: learning_rate, .*precision.$"),
    ],
)
def test_a_name_of_another_library_is_answered(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        use_st5.train("use_dan_en", "none.tsv", "m", **{name: Strange()})


def test_numbers_of_numpy_and_paths_are_kept_as_pythons_own() -> None:
    """The record of the run is JSON, which has only Python's own types."""
    found = make_arguments(
        steps=np.int64(3),
        learning_rate=np.float32(0.5),
        matryoshka_dimensions=[np.int32(4)],
        teacher=Path("t"),
    )
    kept = (found.steps, found.learning_rate, found.matryoshka_dimensions, found.teacher)
    assert kept == (3, 0.5, (4,), "t")
    assert [type(each) for each in (found.steps, found.learning_rate)] == [int, float]
