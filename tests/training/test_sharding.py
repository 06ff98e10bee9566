"""Weights and batches over eight devices, which XLA simulates, in a fresh process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

pytest.importorskip("jax")

from use_st5.training import sharding


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
    assert "divides the 8 devices, received 3" in cut
    assert "to be a multiple of 8 devices. Received: 12" in rows
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
    assert sharding.parts_of_batch() == 1
    assert sharding.placed(batch) == batch
