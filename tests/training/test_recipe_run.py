"""Which part runs where, what is refused before any work, and tasks made of what a recipe says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest

from use_st5 import _progress
from use_st5.data import prepared
from use_st5.data.prepared_column import PreparedColumn
from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.training import recipe_run
from use_st5.training.array_data import ArrayData
from use_st5.training.device import Device
from use_st5.training.recipe import Examples, RecipeTask, Run
from use_st5.training.recipe_run import built_tasks, checkpoints_folder, parts_to_run
from use_st5.training.train import train

PARTS = ("prepare", "train", "export")


@pytest.mark.parametrize(
    ("backend", "part", "expected"),
    [
        ("tensorflow", None, PARTS),
        ("tensorflow", "prepare", ("prepare",)),
        ("tensorflow", "train", ("train",)),
        ("jax", "train", ("train",)),
    ],
)
def test_parts_that_run(
    backend: str, part: str | None, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    assert parts_to_run(part, PARTS) == expected


@pytest.mark.parametrize(
    ("backend", "part", "message"),
    [
        ("tensorflow", "publish", "Unknown part: 'publish'"),
        ("jax", "export", "but for its part 'train', .* unset KERAS_BACKEND"),
        ("jax", None, "TensorFlow: unset KERAS_BACKEND before .* Received: jax"),
        ("torch", "train", "tensorflow or jax, .* set KERAS_BACKEND. Received: torch"),
        ("torch", "export", "Received: torch"),
    ],
)
def test_parts_that_do_not(
    backend: str, part: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    with pytest.raises(ValueError, match=message):
        parts_to_run(part, PARTS)


def test_what_the_export_would_replace_is_looked_at_first(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    checkpoints_folder(tmp_path, resume=True)
    (tmp_path / "model" / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError, match=r"Found thesis\.txt"):
        checkpoints_folder(tmp_path, resume=True)


TASK = RecipeTask(
    name="nli",
    loss=lambda: ClassificationLoss(num_classes=3),
    data=Examples(iter, {}),
    batch_size=8,
)
PARTS_OF_IT = {
    "short": ArrayData({"ids": np.zeros((30, 2), np.int32)}),
    "long": ArrayData({"ids": np.zeros((5, 9), np.int32)}),
}


def test_parts_share_the_loss_and_the_rate_by_their_weighted_sizes() -> None:
    task = dataclasses.replace(TASK, rate=0.4, part_weights={"long": 2.0})
    short, long = built_tasks(task, PARTS_OF_IT)
    assert short.loss is long.loss
    assert (short.mixing_weight, long.mixing_weight) == pytest.approx(
        (0.4 * 30 / 40, 0.4 * 10 / 40)
    )
    assert (short.batch_size, long.batch_size) == (8, 5), "no more than there are"


def test_without_a_rate_it_is_the_size() -> None:
    assert [task.mixing_weight for task in built_tasks(TASK, PARTS_OF_IT)] == [30, 5]


def test_a_trial_prepares_the_rows_of_its_steps_alone_and_finds_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepared, "fingerprint", lambda tokenizer: {})
    read: list[int] = []
    said: list[str] = []

    def examples(data: Path) -> Iterator[dict[str, int]]:
        for row in range(1_000):
            read.append(row)
            yield {"label": row % 7}

    data = Examples(examples, {"label": PreparedColumn("label")})
    task = dataclasses.replace(TASK, data=data)
    recipe: Any = SimpleNamespace(
        stages=[SimpleNamespace(tasks=[task])],
        name="toy",
        **dict.fromkeys(("prepare", "measure"), lambda run: None),
        # A vocabulary may take minutes.
        tokenizer=lambda run: said.extend(state() for state in _progress._states),
        held_out=lambda data: (),
    )
    run = Run(recipe, tmp_path, tmp_path)
    for _ in range(2):
        recipe_run._prepare(run, steps=20)
        assert len(read) == 20 * 8
    assert said == ["preparing toy"]
    of_trial = recipe_run._open(run, task, steps=20)["nli"].arrays["label"]
    with pytest.raises(FileNotFoundError, match="Expected prepared ids"):
        recipe_run._open(run, task, steps=None)
    recipe_run._prepare(run, steps=recipe_run.TRIAL_STEPS)
    assert len(recipe_run._open(run, task, steps=None)["nli"]) == 1_000
    of_whole = recipe_run._open(run, task, steps=20)["nli"].arrays["label"]
    np.testing.assert_array_equal(of_trial, of_whole)


def test_arguments_are_looked_at_before_any_work(tmp_path: Path) -> None:
    stage = SimpleNamespace(tasks=[TASK], options={"gradient_cache": 4})
    recipe: Any = SimpleNamespace(folders=(), stages=[stage])
    run = Run(recipe, tmp_path, tmp_path)
    with pytest.raises(ValueError, match="steps to be 1 or more. Received: 0"):
        recipe_run.run_recipe(run, steps=0)
    recipe_run._check_batches(run, replicas=2)
    with pytest.raises(
        ValueError, match="'nli' to be a multiple of 4 replicas x 4 micro_batches. Received: 8"
    ):
        recipe_run._check_batches(run, replicas=4)


def test_the_folder_of_the_batches_reaches_the_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Path] = {}
    monkeypatch.setattr(
        recipe_run, "_train", lambda run, folder, steps, device: given.update(device.options)
    )
    recipe = SimpleNamespace(check=lambda run: None, folders=(), stages=())
    run = SimpleNamespace(recipe=recipe, output=tmp_path, exported=tmp_path / "model")
    recipe_run.run_recipe(run, part="train", batch_files=Path("gs://bucket/x"))
    assert given == {"batch_files": Path("gs://bucket/x")}


def test_batch_files_are_tensorflow_s(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Device(None, None, "gs://bucket/x").options == {"batch_files": "gs://bucket/x"}
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="batch_files: expected none, .* gs://bucket/x under jax"):
        Device(None, "train", "gs://bucket/x")


def test_several_workers_train_alone() -> None:
    with pytest.raises(ValueError, match=r"^multi_worker: expected --part train\. First run "):
        Device("multi_worker", None)


def test_text_and_a_teacher_s_vectors_are_written_here() -> None:
    recipe: Any = SimpleNamespace(name="taught", folders=("teacher",))
    elsewhere, here = Path("gs://bucket/run"), Path("here")
    for given, named in (((here, None), "prepared"), ((None, here), "teacher")):
        run = Run(recipe, here, elsewhere, 0, given[0], None, given[1])
        with pytest.raises(ValueError, match=rf"gs://bucket/run/{named}: .* --{named} FOLDER"):
            recipe_run._check_places(run)
    recipe_run._check_places(Run(recipe, here, elsewhere, 0, here, None, here))
    recipe.folders = ("pretrained",)
    recipe_run._check_places(Run(recipe, here, elsewhere))


def test_a_training_on_own_data_under_jax_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=r"use_st5\.train needs Keras on TensorFlow: unset"):
        train("use_dan_en", "absent.tsv", "tuned")
