from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from use_st5.convert import safetensors_source
from use_st5.convert.safetensors_source import INDEX, SINGLE, SafetensorsSource


def test_every_dtype_is_read_as_it_is_stored(tmp_path: Path) -> None:
    tensors = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([1.5, 2.5], np.float16),
        "c": np.array([[0.1]], ml_dtypes.bfloat16),
    }
    save_file(tensors, tmp_path / SINGLE)
    source = SafetensorsSource(tmp_path)
    assert source.shapes() == {"a": (2, 3), "b": (2,), "c": (1, 1)}
    for name, tensor in tensors.items():
        read = source.read(name)
        assert read.dtype == tensor.dtype
        np.testing.assert_array_equal(read, tensor)


@pytest.mark.parametrize("size", [1, 24, 100, 10**6])
def test_pieces_are_some_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(safetensors_source, "_PIECE", size)
    tensors = {
        "a": np.arange(77, dtype=np.float32).reshape(11, 7),
        "b": np.arange(5, dtype=ml_dtypes.bfloat16),
    }
    save_file(tensors, tmp_path / SINGLE)
    source = SafetensorsSource(tmp_path)
    for name, tensor in tensors.items():
        pieces = [*source.pieces(name)]
        np.testing.assert_array_equal(np.concatenate(pieces), tensor)
        assert len(pieces) == 1 or max(p.nbytes for p in pieces) <= max(size, tensor[0].nbytes)


def write_index(folder: Path, **files: str) -> None:
    (folder / INDEX).write_text(json.dumps({"weight_map": files}), encoding="utf-8")


def test_damaged_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected model.safetensors.*found neither\.$"):
        SafetensorsSource(tmp_path)
    (tmp_path / INDEX).write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"index.json: \$: expected object, received array"):
        SafetensorsSource(tmp_path)
    write_index(tmp_path, a="one.safetensors")
    with pytest.raises(FileNotFoundError, match=r"one.safetensors: expected this shard"):
        SafetensorsSource(tmp_path)
    (tmp_path / "one.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(ValueError, match=r"one.safetensors: expected a safetensors file"):
        SafetensorsSource(tmp_path)
    save_file({"a": np.zeros(1, np.float32)}, tmp_path / "one.safetensors")
    write_index(tmp_path, a="one.safetensors", b="one.safetensors")
    with pytest.raises(ValueError, match=r"found 1 missing, such as 'b'"):
        SafetensorsSource(tmp_path)
    write_index(tmp_path, a="../one.safetensors")
    with pytest.raises(ValueError, match=r"\$.weight_map\[...\]: expected a path inside"):
        SafetensorsSource(tmp_path)
