from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from use_st5.convert.safetensors_source import SINGLE, SafetensorsSource
from use_st5.convert.weight_source import RenamedSource


def test_only_the_named_ones_are_seen(tmp_path: Path) -> None:
    tensors = {"a": np.arange(3.0), "b": np.zeros((2, 2))}
    save_file(tensors, tmp_path / SINGLE)
    source = RenamedSource(SafetensorsSource(tmp_path), {"x": "a"})
    assert source.shapes() == {"x": (3,)}
    assert source.where == str(tmp_path)
    np.testing.assert_array_equal(source.read("x"), tensors["a"])
    np.testing.assert_array_equal(np.concatenate([*source.pieces("x")]), tensors["a"])
    with pytest.raises(KeyError):
        source.read("a")
