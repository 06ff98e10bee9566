"""T5X checkpoints: the source, Flax's MessagePack, and Zarr's arrays."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.convert.t5x_writer import pack, write_file, write_folder, write_zarr
from use_st5.convert.t5x_source import T5XSource, ZarrArray, read_msgpack_index

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


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="checkpoint"):
        T5XSource(tmp_path)
    (tmp_path / "params").write_bytes(pack({"params": {}}))
    with pytest.raises(ValueError, match="expected the weights of T5X"):
        T5XSource(tmp_path / "params")
    write_file(tmp_path / "text", {"a": "PLACEHOLDER://a"})
    with pytest.raises(ValueError, match="no array at a, but 'PLACEHOLDER://a'"):
        T5XSource(tmp_path / "text")
    write_folder(tmp_path / "folder", TENSORS)
    shutil.rmtree(tmp_path / "folder" / "target.a.kernel")
    with pytest.raises(FileNotFoundError, match=r"target\.a\.kernel.*expected a file"):
        T5XSource(tmp_path / "folder")


TREE = {
    "version": 2,
    "optimizer": {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([0.5, -3.0], ml_dtypes.bfloat16),
        "step": np.array(7, np.int32),
        "spec": {"chunks": [4, 4], "fill": None, "ready": True, "path": "é"},
    },
}


def equal(a: Any, b: Any) -> None:
    if not isinstance(a, dict):
        np.testing.assert_array_equal(a, b)
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
        return
    assert list(a) == list(b)
    for name in a:
        equal(a[name], b[name])


def test_a_tree_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(pack(TREE))
    index = read_msgpack_index(path)
    assert index["optimizer"]["a"].shape == (2, 3)
    equal(index, TREE)


def test_the_real_file(data_dir: Path) -> None:
    msgpack = pytest.importorskip("msgpack")
    path = data_dir / "weights/t5x-testdata/t5x/testdata/test_t5_tiny.checkpoint_0"

    def array(code: int, content: bytes) -> np.ndarray:
        assert code == 1
        shape, dtype, numbers = msgpack.unpackb(content)
        return np.frombuffer(numbers, dtype).reshape(shape)

    equal(read_msgpack_index(path), msgpack.unpackb(path.read_bytes(), ext_hook=array))


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    content = pack(TREE)
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match="expected a checkpoint written by Flax"):
            read_msgpack_index(path)
    for other in (
        b'model_checkpoint_path: "a"',
        b"\xc1",
        b"\x81\x01\x02",
        b"\x91" * 10_000,
        b"\xdd" + b"\xff" * 4,
    ):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="expected a checkpoint written by Flax"):
            read_msgpack_index(path)


def test_objects_are_refused(tmp_path: Path) -> None:
    """NumPy would unpickle them."""
    path = tmp_path / "checkpoint"
    path.write_bytes(pack({"a": np.zeros(2)}).replace(b"float64", b"object_"))
    with pytest.raises(ValueError, match="expected a checkpoint written by Flax"):
        read_msgpack_index(path)
    path.write_bytes(b"\x81\xa1a\xd4\x05\x00")
    with pytest.raises(ValueError, match="expected a checkpoint written by Flax"):
        read_msgpack_index(path)


ARRAY = np.arange(7 * 5, dtype=np.float32).reshape(7, 5)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("chunks", [(7, 5), (3, 2), (1, 5), (4, 5)])
def test_chunks_of_any_size(tmp_path: Path, chunks: tuple[int, ...], compressed: bool) -> None:
    for array in (ARRAY, ARRAY.astype(ml_dtypes.bfloat16), ARRAY.astype(">f4")):
        folder = tmp_path / array.dtype.str.strip("<>|")
        folder = folder.with_name(f"{folder.name}{array.dtype.byteorder == '>'}")
        write_zarr(folder, array, chunks=chunks, compressed=compressed)
        read = ZarrArray(folder)
        assert (read.shape, read.dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(np.concatenate([*read.rows()]), array)
        assert max(map(len, read.rows())) == min(7, chunks[0])


def test_vectors_and_deeper_arrays(tmp_path: Path) -> None:
    for array in (np.arange(7.0), np.arange(60.0).reshape(3, 4, 5)):
        write_zarr(tmp_path / str(array.ndim), array, chunks=(2, 3, 4)[: array.ndim])
        pieces = [*ZarrArray(tmp_path / str(array.ndim)).rows()]
        np.testing.assert_array_equal(np.concatenate(pieces), array)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compressor": {"id": "blosc"}}, "packed by 'blosc'"),
        ({"zarr_format": 3}, r"\$.zarr_format: invalid enum value 3"),
        ({"filters": [{"id": "delta"}]}, r"\$.filters: expected array of length <= 0"),
        ({"dtype": "|O"}, r"expected a dtype of numbers.* received '\|O'"),
        ({"dtype": "<f1"}, "expected a dtype of numbers"),
        ({"chunks": [8, 5]}, r"chunks \(8, 5\) of \(7, 5\)"),
        ({"shape": [7, 1e300]}, r"\$.shape\[1\]: expected int"),
        ({"chunks": [3]}, r"chunks \(3,\) of"),
        ({"chunks": [3, 0]}, r"\$.chunks\[1\]: expected int >= 1"),
        ({"dimension_separator": "../"}, r"\$.dimension_separator: invalid"),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_zarr(tmp_path / "a", ARRAY, chunks=(3, 2))
    path = tmp_path / "a" / ".zarray"
    metadata = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps(metadata), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        ZarrArray(tmp_path / "a")


def test_damaged_chunks(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"\.zarray: expected a file"):
        ZarrArray(tmp_path)
    write_zarr(tmp_path / "a", ARRAY, chunks=(7, 5))
    chunk = tmp_path / "a" / "0.0"
    content = chunk.read_bytes()
    for damaged in (content[:30], b"", b"no gzip", gzip.compress(b"\0" * 10**6)):
        chunk.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"a(/0\.0)?: .*Copy"):
            next(ZarrArray(tmp_path / "a").rows())
    chunk.unlink()
    with pytest.raises(ValueError, match="found 0 of 1 chunks"):
        next(ZarrArray(tmp_path / "a").rows())


def test_chunks_are_held_against_the_array_before_they_are_read(tmp_path: Path) -> None:
    write_zarr(tmp_path / "a", ARRAY, chunks=(3, 2))
    ZarrArray(tmp_path / "a")
    path = tmp_path / "a" / ".zarray"
    metadata = json.loads(path.read_text(encoding="utf-8"))
    for shape, chunks in (([10**6, 10**6], [1, 1]), ([10**9, 9], [10**9, 9])):
        path.write_text(json.dumps({**metadata, "shape": shape, "chunks": chunks}))
        with pytest.raises(ValueError, match="found .* chunks"):
            ZarrArray(tmp_path / "a")
    path.write_text(json.dumps(metadata))
    with (tmp_path / "a" / "0.0").open("ab") as file:
        file.truncate(2**40)  # sparse
    with pytest.raises(ValueError, match="0.0: expected up to 1,048 bytes"):
        next(ZarrArray(tmp_path / "a").rows())
