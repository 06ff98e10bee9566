"""The parts, folders and options of a run."""

from __future__ import annotations

from pathlib import Path

import keras
import pytest

from experiments.run import Run


def test_parts_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(Run(tmp_path, tmp_path).does(part) for part in ("prepare", "train", "export"))
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    training = Run(tmp_path, tmp_path, part="train")
    assert (training.does("train"), training.does("export")) == (True, False)
    with pytest.raises(ValueError, match="unset KERAS_BACKEND"):
        Run(tmp_path, tmp_path)


def test_several_machines_only_train(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="multi_worker: expected --part train"):
        Run(tmp_path, tmp_path, strategy="multi_worker")


def test_what_the_export_would_replace_is_looked_at_first(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with Run(tmp_path, tmp_path).begun():
        pass
    (tmp_path / "model" / "thesis.txt").write_text("years")
    run = Run(tmp_path, tmp_path)
    with pytest.raises(FileExistsError, match="no exported model"), run.begun():
        pass


def test_checkpoints_are_kept_unless_the_run_may_resume(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with Run(tmp_path, tmp_path).begun():
        pass
    run = Run(tmp_path, tmp_path, resume=False)
    with pytest.raises(FileExistsError, match="checkpoints exists. Remove it"), run.begun():
        pass


def test_the_facts_of_a_training_are_asked_for(tmp_path: Path) -> None:
    run = Run(tmp_path, tmp_path, seed=3)
    with pytest.raises(FileNotFoundError, match=r"training\.json, .* --part train --out"):
        run.facts()
    run.write_facts(tasks=["one"])
    assert Run(tmp_path, tmp_path, seed=4).facts() == {"tasks": ["one"], "seed": 3}
