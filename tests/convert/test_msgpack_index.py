from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.convert.t5x_writer import pack
from use_st5.convert.msgpack_index import StoredArray, read_msgpack_index

TREE = {
    "version": 2,
    "optimizer": {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([0.5, -3.0], ml_dtypes.bfloat16),
        "step": np.array(7, np.int32),
        "spec": {"chunks": [4, 4], "fill": None, "ready": True, "path": "é"},
    },
}


def arrays(tree: Any) -> Any:
    """The tree with the arrays themselves."""
    if isinstance(tree, StoredArray):
        return tree.read()
    return {name: arrays(t) for name, t in tree.items()} if isinstance(tree, dict) else tree


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
    equal(arrays(index), TREE)


@pytest.mark.parametrize(
    "value",
    [0, 127, 128, -1, -32, -33, 300, 70_000, 2**40, -(2**40), 1.5, "", "x" * 31, "x" * 40,
     "x" * 300, "x" * 70_000, [1] * 15, [1] * 16, [1] * 70_000, b"ab",
     {str(n): n for n in range(20)}],
)  # fmt: skip
def test_every_encoding_of_the_library(tmp_path: Path, value: Any) -> None:
    msgpack = pytest.importorskip("msgpack")
    path = tmp_path / "checkpoint"
    path.write_bytes(msgpack.packb({"value": value}))
    assert read_msgpack_index(path) == {"value": value}


def test_extensions_of_every_length(tmp_path: Path) -> None:
    """Flax's own nesting: an extension around a triple, both written by the library."""
    msgpack = pytest.importorskip("msgpack")
    for count in range(300):
        array = np.arange(count, dtype=np.uint8)
        triple = msgpack.packb((array.shape, array.dtype.name, array.tobytes()))
        path = tmp_path / "checkpoint"
        path.write_bytes(msgpack.packb({"a": msgpack.ExtType(1, triple)}))
        np.testing.assert_array_equal(read_msgpack_index(path)["a"].read(), array)


def test_the_real_file(data_dir: Path) -> None:
    msgpack = pytest.importorskip("msgpack")
    path = data_dir / "weights/t5x-testdata/t5x/testdata/test_t5_tiny.checkpoint_0"

    def array(code: int, content: bytes) -> np.ndarray:
        assert code == 1
        shape, dtype, numbers = msgpack.unpackb(content)
        return np.frombuffer(numbers, dtype).reshape(shape)

    equal(arrays(read_msgpack_index(path)), msgpack.unpackb(path.read_bytes(), ext_hook=array))


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    content = pack(TREE)
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match="expected a checkpoint written by Flax"):
            read_msgpack_index(path)
    for other in (b'model_checkpoint_path: "a"', b"\xc1", b"\x81\x01\x02", b"\x91" * 10_000):
        path.write_bytes(other)
        if other[0] == 0x6D:
            assert read_msgpack_index(path) == 0x6D, "a number to MessagePack, no tree"
            continue
        with pytest.raises(ValueError, match="expected a checkpoint written by Flax"):
            read_msgpack_index(path)


def test_objects_are_refused(tmp_path: Path) -> None:
    """NumPy would unpickle them."""
    path = tmp_path / "checkpoint"
    path.write_bytes(pack({"a": np.zeros(2)}).replace(b"float64", b"object_"))
    with pytest.raises(ValueError, match="expected a checkpoint written by Flax"):
        read_msgpack_index(path)
    path.write_bytes(pack({"a": np.zeros(2)}).replace(b"\xc9", b"\xc8\x00\x10\x05", 1))
    with pytest.raises(ValueError, match="an extension of kind 5"):
        read_msgpack_index(path)
