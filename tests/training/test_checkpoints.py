from __future__ import annotations

from pathlib import Path

import keras
import ml_dtypes
import numpy as np
import pytest

from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.layers.lora_dense import LoRADense
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.lora import apply_lora
from use_st5.models.t5.model import T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.training.checkpoints import (
    Checkpoints,
    changing_variables,
    fingerprint,
    frozen_weights,
)
from use_st5.training.task import Task
from use_st5.training.tensorflow_step import TensorFlowLoop


def variables_of(value: float) -> dict[str, list[keras.Variable]]:
    return {
        "a": [keras.Variable(value, dtype="float32")],
        "b": [keras.Variable([value, value], dtype="bfloat16")],
        "none": [],
    }


def checkpoints_of(folder: Path, value: float = 0.0, **options: bool) -> Checkpoints:
    return Checkpoints(folder, variables_of(value), **options)


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    checkpoints = checkpoints_of(tmp_path / "run")
    for step in (1, 2, 3, 4):
        checkpoints.save(step, {"step": step}, also_keep=[1])
    assert checkpoints.steps() == [1, 4]
    assert checkpoints.state(4) == {"step": 4}
    (tmp_path / "run" / "checkpoint-000000004" / "state.json").write_text("{")
    with pytest.raises(
        ValueError,
        match=r"state.json: .*Remove .*: the run continues from an earlier one",
    ):
        checkpoints.state(4)


def test_values_come_back_whole_or_by_group(tmp_path: Path) -> None:
    checkpoints_of(tmp_path, 5.0).save(9, {})
    other = checkpoints_of(tmp_path)
    other.restore(9, groups=["b"])
    (a,), (b,) = other._variables["a"], other._variables["b"]
    assert a.numpy() == 0.0
    assert b.numpy().dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(b.numpy().astype(float), [5.0, 5.0])
    other.restore(9)
    assert a.numpy() == 5.0


def test_a_failed_save_leaves_nothing_and_a_killed_one_is_swept(tmp_path: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    with pytest.raises(TypeError):
        checkpoints.save(1, {"not": object()})
    assert list(tmp_path.iterdir()) == []
    leftover = tmp_path / ".checkpoint-000000001.use_st5-0123456789ab"
    leftover.mkdir()
    (leftover / "values.safetensors").write_text("half")
    assert checkpoints.steps() == []
    checkpoints.save(2, {})
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000002"]


def test_a_worker_that_does_not_write_leaves_nothing(tmp_path: Path) -> None:
    checkpoints_of(tmp_path, writes=False).save(1, {})
    assert list(tmp_path.iterdir()) == []


def test_a_removal_that_is_killed_leaves_no_half_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    checkpoints = checkpoints_of(tmp_path)
    checkpoints.save(1, {})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("use_st5.training.checkpoints.shutil.rmtree", killed)
        checkpoints.save(2, {})
    assert checkpoints.steps() == [2]
    checkpoints.save(3, {})
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000003"]


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    checkpoints_of(tmp_path, 1.0).save(3, {})
    more = variables_of(0.0) | {"c": [keras.Variable(0.0)]}
    with pytest.raises(ValueError, match=r"expected the variables of this run.* c/0"):
        Checkpoints(tmp_path, more).restore(3)


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, None])
def test_a_damaged_checkpoint_is_named(tmp_path: Path, content: bytes | None) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoints.save(3, {})
    path = tmp_path / "checkpoint-000000003" / "values.safetensors"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ValueError, match="checkpoint-000000003: expected the variables of this"):
        checkpoints.restore(3)


def paths(variables: list[keras.Variable]) -> list[str]:
    return [variable.path.split("/", maxsplit=1)[-1] for variable in variables]


def test_a_frozen_layer_and_an_adapted_kernel_are_frozen_statistics_and_seeds_are_not() -> None:
    layers = [
        keras.layers.Dense(3, name="rests"),
        keras.layers.BatchNormalization(name="normalizes"),
        keras.layers.Dropout(0.5, name="drops"),
        LoRADense(3, name="adapted"),
    ]
    model = keras.Sequential(layers)
    model.build((None, 3))
    assert frozen_weights(model) == []
    assert changing_variables(model) == model.variables
    layers[0].trainable = False
    layers[3].enable_lora(1)
    assert paths(frozen_weights(model)) == ["rests/kernel", "rests/bias", "adapted/kernel"]
    changing = changing_variables(model)
    assert {"moving_mean", "moving_variance", "seed_generator_state", "lora_kernel_a"} <= {
        variable.name for variable in changing
    }
    assert len(changing) == len(model.variables) - 3


def test_a_fingerprint_knows_every_value_and_their_order() -> None:
    a, b = (keras.Variable(np.full((2, 2), x), dtype="bfloat16") for x in (1.0, 2.0))
    before = fingerprint([a, b])
    assert before != fingerprint([b, a])
    assert before == fingerprint([keras.Variable(v) for v in (a, b)])
    b.assign([[2.0, 2.0], [2.0, 2.015625]])
    assert fingerprint([a, b]) != before


def adapted(folder: Path | None, *, base: int = 1, adapters: int = 2) -> TensorFlowLoop:
    """A run that trains adapters, with dropout, on a T5 that is mostly its token table."""
    keras.utils.set_random_seed(base)
    model = SentenceT5(T5Config(5_000, 1, 16, 32, 2, 8, dropout=0.2), projection_dim=None)
    model.build()
    apply_lora(model, rank=2, seed=adapters)
    data = ArrayData(
        dict(zip(("anchor", "positive"), toy.arrays().values(), strict=False)),
    )
    task = Task("pairs", ContrastiveLoss(), data, batch_size=16)
    adam = keras.optimizers.Adam(1e-2)
    return toy.loop(TensorFlowLoop, model, [task], adam, folder=folder)


def test_a_run_of_adapters_is_kept_without_its_base_and_resumed_exactly(tmp_path: Path) -> None:
    whole = adapted(None)
    whole.run(6)
    adapted(tmp_path).run(4)
    rest = adapted(tmp_path, adapters=3)
    rest.run(6)
    assert [record["step"] for record in rest.history.records] == [6]
    for a, b in zip(whole.encoder.variables, rest.encoder.variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    base = sum(4 * np.prod(v.shape) for v in frozen_weights(whole.encoder))
    (checkpoint,) = tmp_path.glob("checkpoint-*")
    assert sum(path.stat().st_size for path in checkpoint.iterdir()) < 0.1 * base
    with pytest.raises(ValueError, match=r"\n  frozen: begun with .*, now "):
        adapted(tmp_path, base=7).run(8)
