from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import ml_dtypes
import numpy as np
import pytest

from use_st5.training.array_checkpoints import ArrayCheckpoints
from use_st5.training.checkpoints import Checkpoints
from use_st5.training.tensorflow_checkpoints import TensorFlowCheckpoints

Make = Callable[..., Checkpoints]
KINDS = (TensorFlowCheckpoints, ArrayCheckpoints)


def variables_of(value: float) -> dict[str, list[keras.Variable]]:
    return {
        "a": [keras.Variable(value, dtype="float32")],
        "b": [keras.Variable([value, value], dtype="bfloat16")],
        "none": [],
    }


@pytest.fixture(params=KINDS)
def checkpoints_of(request: pytest.FixtureRequest) -> Make:
    """Makes checkpoints of one of the kinds: `checkpoints_of(folder, value, **options)`."""

    def make(folder: Path, value: float = 0.0, **options: int) -> Checkpoints:
        return request.param(folder, variables_of(value), **options)

    return make


def test_the_newest_and_the_best_are_kept(tmp_path: Path, checkpoints_of: Make) -> None:
    checkpoints = checkpoints_of(tmp_path / "run", keep=2)
    for step in (1, 2, 3, 4):
        checkpoints.save(step, {"step": step}, also_keep=1)
    assert checkpoints.steps() == [1, 3, 4]
    assert checkpoints.state(3, dict[str, int]) == {"step": 3}
    (tmp_path / "run" / "checkpoint-000000003" / "state.json").write_text("{")
    with pytest.raises(ValueError, match=r"state.json: \$: expected .*Remove .*before it"):
        checkpoints.state(3, dict[str, int])


def test_values_come_back_whole_or_by_group(tmp_path: Path, checkpoints_of: Make) -> None:
    checkpoints_of(tmp_path, 5.0).save(9, {})
    other = checkpoints_of(tmp_path)
    other.restore(9, groups=["b"])
    (a,), (b,) = other._variables["a"], other._variables["b"]
    assert a.numpy() == 0.0
    assert b.numpy().dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(b.numpy().astype(float), [5.0, 5.0])
    other.restore(9)
    assert a.numpy() == 5.0


def test_a_failed_save_leaves_nothing_and_a_killed_one_is_swept(
    tmp_path: Path, checkpoints_of: Make
) -> None:
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
    TensorFlowCheckpoints(tmp_path, variables_of(0.0), writes=False).save(1, {})
    assert list(tmp_path.iterdir()) == []


def test_one_at_least_is_kept(tmp_path: Path, checkpoints_of: Make) -> None:
    with pytest.raises(ValueError, match="at least one checkpoint. Received: 0"):
        checkpoints_of(tmp_path, keep=0)


def test_a_removal_that_is_killed_leaves_no_half_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoints_of: Make
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


def test_a_missing_checkpoint_is_named(tmp_path: Path, checkpoints_of: Make) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoints.save(3, {})
    with pytest.raises(FileNotFoundError, match=r"step 4 in .* of steps: \[3\]"):
        checkpoints.restore(4)


@pytest.mark.parametrize(("kind", "other"), [KINDS, KINDS[::-1]])
def test_a_checkpoint_of_the_other_kind_is_refused(kind: type, other: type, tmp_path: Path) -> None:
    kind(tmp_path, variables_of(1.0)).save(3, {})
    with pytest.raises(
        ValueError, match=r"expected values.*found \['state.json', 'values.*KERAS_BACKEND"
    ):
        other(tmp_path, variables_of(0.0)).restore(3)


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    ArrayCheckpoints(tmp_path, variables_of(1.0)).save(3, {})
    more = variables_of(0.0) | {"c": [keras.Variable(0.0)]}
    with pytest.raises(ValueError, match=r"expected the arrays \['c/0'\]"):
        ArrayCheckpoints(tmp_path, more).restore(3)
