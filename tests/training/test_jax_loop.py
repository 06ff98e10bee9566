"""The loop under JAX, in a fresh process: Keras has one backend in a process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

pytest.importorskip("jax")

from tests.training import toy
from tests.training.backend_cases import CASES, STEPS, two_tasks, weights
from use_st5.training import jax_loop
from use_st5.training.jax_loop import JaxLoop
from use_st5.training.tensorflow_step import TensorFlowLoop


@pytest.mark.process
def test_steps_are_those_under_tensorflow_and_resume_exactly(
    tmp_path: Path, under_jax: Callable[..., str]
) -> None:
    keras.utils.set_random_seed(0)
    trainers = {name: case(TensorFlowLoop) for name, case in CASES.items()}
    initial = {
        f"{name}/{i}": array
        for name, trainer in trainers.items()
        for i, array in enumerate(weights(trainer))
    }
    files = tmp_path / "initial.npz", tmp_path / "final.npz"
    np.savez(files[0], **initial)
    exchanged = begin_under_tensorflow(tmp_path)
    output = under_jax("training/jax_run.py", *files)
    found = np.load(files[1])
    for name, trainer in trainers.items():
        losses = [record["loss"] for record in trainer.run(STEPS).records]
        np.testing.assert_allclose(found[f"{name}/losses"], losses, rtol=1e-5)
        moved = 0.0
        for i, array in enumerate(weights(trainer)):
            np.testing.assert_allclose(found[f"{name}/{i}"], array, rtol=0, atol=1e-5)
            moved = max(moved, np.abs(array - initial[f"{name}/{i}"]).max())
        assert moved > 1e-3
    assert json.loads(output.splitlines()[-1]) == {
        "same": True,
        "steps": [6, 8],
        "files": ["state.json", "values.safetensors"],
    }
    exchanged()


def begin_under_tensorflow(folder: Path) -> Callable[[], None]:
    """Begins runs for JAX to continue; returns a function that then continues and checks them."""

    def trained(steps: int, **options: Any) -> TensorFlowLoop:
        keras.utils.set_random_seed(7)
        trainer = two_tasks(TensorFlowLoop, **options)
        trainer.run(steps)
        return trainer

    whole = trained(8)
    trained(4, folder=folder / "exchanged")
    trained(4, folder=folder / "dropout", dropout=0.3)

    def end() -> None:
        keras.utils.set_random_seed(8)
        again = two_tasks(TensorFlowLoop, folder=folder / "exchanged")
        assert [record["step"] for record in again.run(8).records] == [8]
        for expected, found in zip(weights(whole), weights(again), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        for expected, found in zip(
            whole.optimizer.variables, again.optimizer.variables, strict=True
        ):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=1e-5)
        # Dropout draws other numbers under each backend, but its state can be continued.
        masked = two_tasks(TensorFlowLoop, dropout=0.3, folder=folder / "dropout")
        assert [record["step"] for record in masked.run(8).records] == [8]

    return end


def test_under_tensorflow_it_is_refused() -> None:
    arguments = (toy.ToyEncoder(), toy.tasks(only=("nli",)), keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="KERAS_BACKEND=jax before"):
        toy.loop(JaxLoop, *arguments)


@pytest.mark.end_to_end
@pytest.mark.process
def test_eight_devices_give_the_weights_of_one(
    under_jax: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    devices = "--xla_force_host_platform_device_count=8"
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ['XLA_FLAGS']} {devices}")
    output = under_jax("training/sharded_run.py")
    found = json.loads(output.splitlines()[-1])
    assert found.pop("devices") == 8
    cut, rows = found.pop("refused")
    assert "part of 8 devices, received 3" in cut
    assert "a multiple of 8 devices, received 12" in rows
    # Most of the memory is activations, which shrink; the gradient of the table does not.
    assert found.pop("memory") < 0.5
    assert len(found) == 4
    for name, case in found.items():
        assert case["apart"] < 1e-5 < 1e-3 < case["moved"], name
        # A mesh of two by four: kernels are cut in eight, the table in four. Norms and biases are
        # whole on each device; in models as small as these, they are a large share.
        assert case["share"] == 1.0 if name.endswith("data") else case["share"] < 0.5, name


def test_without_a_distribution_a_batch_stays_as_it_is() -> None:
    batch = {"ids": object()}
    assert jax_loop.parts_of_batch() == 1
    assert jax_loop.placed(batch) == batch
