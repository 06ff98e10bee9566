"""The parts, folders and options of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import pytest

from experiments.run import Run, parts_to_run

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
    backend: str, part: Any, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
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
    backend: str, part: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    with pytest.raises(ValueError, match=message):
        parts_to_run(part, PARTS)


def test_what_the_export_would_replace_is_looked_at_first(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with Run(tmp_path, tmp_path).begun():
        pass
    (tmp_path / "model" / "thesis.txt").write_text("years")
    run = Run(tmp_path, tmp_path)
    with pytest.raises(FileExistsError, match=r"Found thesis\.txt"), run.begun():
        pass


def test_checkpoints_are_kept_unless_the_run_may_resume(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with Run(tmp_path, tmp_path).begun():
        pass
    run = Run(tmp_path, tmp_path, resume=False)
    with pytest.raises(FileExistsError, match="checkpoints exists. Remove it"), run.begun():
        pass


def test_options_are_looked_at_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="steps to be 1 or more. Received: 0"):
        Run(tmp_path, tmp_path, steps=0)
    with pytest.raises(ValueError, match=r"^multi_worker: expected --part train\. First run "):
        Run(tmp_path, tmp_path, strategy="multi_worker")
    assert Run(tmp_path, tmp_path, batch_files="gs://bucket/x").batch_files == "gs://bucket/x"
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    for name, given in (("batch_files", "gs://bucket/x"), ("strategy", "one")):
        options: Any = {"part": "train", name: given}
        with pytest.raises(ValueError, match=f"{name}: expected None, .* {given} under jax"):
            Run(tmp_path, tmp_path, **options)


def test_a_trial_has_few_steps(tmp_path: Path) -> None:
    trials = [Run(tmp_path, tmp_path, steps=steps).trial_steps for steps in (None, 20, 100)]
    assert trials == [None, 20, None]


def test_the_facts_of_a_training_are_asked_for(tmp_path: Path) -> None:
    run = Run(tmp_path, tmp_path, seed=3)
    with pytest.raises(FileNotFoundError, match=r"training\.json, .* --part train --out"):
        run.facts()
    run.write_facts(tasks=["one"])
    assert Run(tmp_path, tmp_path, seed=4).facts() == {"tasks": ["one"], "seed": 3}


def test_text_and_a_teachers_vectors_are_written_here(tmp_path: Path) -> None:
    run = Run(tmp_path, Path("gs://bucket/run"))
    with pytest.raises(ValueError, match=r"gs://bucket/run/prepared: .* --prepared FOLDER"):
        run.check_local(prepared=run.prepared)
    with pytest.raises(ValueError, match=r"gs://bucket/run/teacher: .* --teacher FOLDER"):
        run.check_local(teacher=run.output / "teacher")
    run.check_local(prepared=tmp_path, teacher=tmp_path)
