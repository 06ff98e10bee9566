"""The training of Transformers in PyTorch."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.bundled_models.transformer_student import groups

pytest.importorskip("torch", reason="needs PyTorch (extra peers)")

_SCRIPT = "tests.experiments.bundled_models.train_transformer_student"


def test_groups_hold_each_text_once_and_few_shapes() -> None:
    lengths = np.random.default_rng(0).integers(1, 257, 2_000)
    found = [*groups(lengths)]
    assert sorted(itertools.chain.from_iterable(places for places, _, _ in found)) == [
        *range(2_000)
    ]
    for places, rows, columns in found:
        assert len(places) <= rows
        assert lengths[places].max() <= columns
        assert rows * columns <= 2048
    assert len({(rows, columns) for _, rows, columns in found}) < 40
    assert sum(rows * columns for _, rows, columns in found) < 1.2 * lengths.sum()


@pytest.mark.parametrize("name", ["use_transformer", "sentence_t5"])
def test_it_learns_and_goes_on_as_if_it_had_not_stopped(
    tmp_path: Path, repository: Path, name: str
) -> None:
    environment = {**os.environ, "KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", _SCRIPT, name, str(tmp_path)]
    subprocess.run(command, check=True, cwd=repository, env=environment, capture_output=True)
    found = json.loads((tmp_path / "found.json").read_text())
    # Vectors of all texts together are those of one text alone, in bfloat16's precision.
    assert found["difference"] < 0.02
    assert found["losses"][-1] < 0.5 * found["losses"][0]
    assert found["after_a_stop"] == pytest.approx(found["without"], abs=1e-6)
