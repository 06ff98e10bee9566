"""A training on a file of each task takes the steps that are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import trainings
from tests.golden.write import read

STORED = read("trainings")
# Differences between processors; another order of a batch, or setting, makes 100 times as much.
RELATIVE, ABSOLUTE = 1e-3, 1e-4


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files and the models that trainings begin with."""
    folder = tmp_path_factory.mktemp("trainings")
    trainings.write_files(folder)
    return folder


def assert_close(found: Any, stored: Any, where: str) -> None:
    """Checks that names and integers are the same, and that other numbers are close."""
    if isinstance(stored, dict):
        assert found.keys() == stored.keys(), where
        for name, value in stored.items():
            assert_close(found[name], value, f"{where} {name}")
    elif isinstance(stored, list) and stored and isinstance(stored[0], dict):
        assert len(found) == len(stored), where
        for row, expected in zip(found, stored, strict=True):
            assert_close(row, expected, where)
    elif isinstance(stored, int):
        assert found == stored, where
    else:
        np.testing.assert_allclose(
            found, np.array(stored), rtol=RELATIVE, atol=ABSOLUTE, err_msg=where
        )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.end_to_end] if name in trainings.SLOW else [])
        for name in trainings.TRAININGS
    ],
)
def test_steps_losses_scores_and_vectors(name: str, files: Path) -> None:
    if name in trainings.SLOW:
        pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    found, stored = trainings.trained(name, files), STORED[name]
    assert_close(found, stored, name)
