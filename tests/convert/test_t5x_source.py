from __future__ import annotations

import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.convert.t5x_writer import pack, write_file, write_folder
from use_st5.convert.t5x_source import T5XSource

TENSORS = {
    "a/kernel": np.arange(20, dtype=np.float32).reshape(4, 5),
    "a/scale": np.ones(5, ml_dtypes.bfloat16),
    "b/out/kernel": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "b/key/kernel": np.arange(24, dtype=np.float32).reshape(4, 2, 3),
}


def check(source: T5XSource, **joined: tuple[int, ...]) -> None:
    for name, tensor in TENSORS.items():
        expected = tensor.reshape(joined.get(name.split("/")[1], tensor.shape))
        assert source.shapes()[name] == expected.shape
        assert source.read(name).dtype == tensor.dtype
        np.testing.assert_array_equal(source.read(name), expected)
        np.testing.assert_array_equal(np.concatenate([*source.pieces(name)]), expected)
    assert len(source.shapes()) == len(TENSORS), "the optimizer's state is left out"


def test_both_forms_and_kernels_for_each_head(tmp_path: Path) -> None:
    write_file(tmp_path / "file", TENSORS)
    check(T5XSource(tmp_path / "file"), out=(6, 4), key=(4, 6))
    write_folder(tmp_path / "folder", TENSORS)
    check(T5XSource(tmp_path / "folder"), out=(6, 4), key=(4, 6))
    check(T5XSource(tmp_path / "folder" / "checkpoint"), out=(6, 4), key=(4, 6))


def test_arrays_that_flax_splits(tmp_path: Path) -> None:
    flat = np.arange(20, dtype=np.float32)
    chunks = {str(n): part for n, part in enumerate(np.split(flat, [7, 14]))}
    split = {"__msgpack_chunked_array__": True, "shape": {"0": 4, "1": 5}, "chunks": chunks}
    write_file(tmp_path / "file", {"a": split})
    np.testing.assert_array_equal(T5XSource(tmp_path / "file").read("a"), flat.reshape(4, 5))
    del chunks["2"]
    write_file(tmp_path / "file", {"a": split})
    with pytest.raises(ValueError, match=r"the pieces of an array \[4, 5\], found 14"):
        T5XSource(tmp_path / "file")


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"checkpoint: expected a T5X checkpoint"):
        T5XSource(tmp_path)
    (tmp_path / "params").write_bytes(pack({"params": {}}))
    with pytest.raises(ValueError, match='under "optimizer/target", found params'):
        T5XSource(tmp_path / "params")
    write_file(tmp_path / "text", {"a": "PLACEHOLDER://a"})
    with pytest.raises(ValueError, match="expected an array at a, found 'PLACEHOLDER://a'"):
        T5XSource(tmp_path / "text")
    write_folder(tmp_path / "folder", TENSORS)
    shutil.rmtree(tmp_path / "folder" / "target.a.kernel")
    with pytest.raises(FileNotFoundError, match=r"target\.a\.kernel.*expected an array of Zarr"):
        T5XSource(tmp_path / "folder")
