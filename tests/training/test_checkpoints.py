from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from use_st5.training.checkpoints import Checkpoints


def checkpoints_of(folder: Path, value: float = 0.0, **options: int) -> Checkpoints:
    variables = {"a": [tf.Variable(value)], "b": [tf.Variable([value, value])]}
    return Checkpoints(folder, variables, **options)


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    checkpoints = checkpoints_of(tmp_path / "run", keep=2)
    for step in (1, 2, 3, 4):
        checkpoints.save(step, {"step": step}, also_keep=1)
    assert checkpoints.steps() == [1, 3, 4]
    assert checkpoints.state(3) == {"step": 3}


def test_values_come_back_whole_or_by_group(tmp_path: Path) -> None:
    checkpoints_of(tmp_path, 5.0).save(9, {})
    other = checkpoints_of(tmp_path)
    other.restore(9, groups=["b"])
    assert other._variables["a"][0].numpy() == 0.0
    np.testing.assert_array_equal(other._variables["b"][0], [5.0, 5.0])
    other.restore(9)
    assert other._variables["a"][0].numpy() == 5.0


def test_a_failed_save_leaves_nothing_and_a_killed_one_is_swept(tmp_path: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    with pytest.raises(TypeError):
        checkpoints.save(1, {"not": object()})
    assert list(tmp_path.iterdir()) == []
    leftover = tmp_path / ".checkpoint-000000001.0123456789ab"
    leftover.mkdir()
    (leftover / "values.index").write_text("half")
    assert checkpoints.steps() == []
    checkpoints.save(2, {})
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000002"]


def test_a_worker_that_does_not_write_leaves_nothing(tmp_path: Path) -> None:
    checkpoints_of(tmp_path, writes=False).save(1, {})
    assert list(tmp_path.iterdir()) == []


def test_one_at_least_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one checkpoint. Received: 0"):
        checkpoints_of(tmp_path, keep=0)


def test_a_removal_that_is_killed_leaves_no_half_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path) -> None:
        (path / "state.json").unlink()
        raise KeyboardInterrupt

    checkpoints = checkpoints_of(tmp_path, keep=1)
    checkpoints.save(1, {})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("use_st5.training.checkpoints.shutil.rmtree", killed)
        checkpoints.save(2, {})
    assert checkpoints.steps() == [2]
    checkpoints.save(3, {})
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000003"]


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoints.save(3, {})
    with pytest.raises(FileNotFoundError, match=r"step 4 in .* of steps: \[3\]"):
        checkpoints.restore(4)
