from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.convert.t5x_writer import write_zarr
from use_st5.convert.zarr_array import ZarrArray

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
        np.testing.assert_array_equal(read.read(), array)
        assert max(map(len, read.rows())) == min(7, chunks[0])


def test_vectors_and_deeper_arrays(tmp_path: Path) -> None:
    for array in (np.arange(7.0), np.arange(60.0).reshape(3, 4, 5)):
        write_zarr(tmp_path / str(array.ndim), array, chunks=(2, 3, 4)[: array.ndim])
        np.testing.assert_array_equal(ZarrArray(tmp_path / str(array.ndim)).read(), array)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compressor": {"id": "blosc"}}, "compressor is {'id': 'blosc'}"),
        ({"zarr_format": 3}, "zarr_format is 3"),
        ({"filters": [{"id": "delta"}]}, "filters is"),
        ({"order": "F"}, "order is 'F'"),
        ({"dtype": "|O"}, r"\$.dtype: expected a dtype of numbers.* received '\|O'"),
        ({"dtype": "<U1"}, r"\$.dtype: expected a dtype of numbers.* received '<U1'"),
        ({"dtype": [["a", "<f4"]]}, r"\$.dtype: expected str, received array"),
        ({"dtype": "<f1"}, r"\$.dtype: expected a dtype of numbers.* received '<f1'"),
        ({"chunks": [8, 5]}, r"chunks is \[8, 5\]"),
        ({"shape": [7, float("inf")]}, r"\$: expected JSON, received another text"),
        ({"shape": [7, 1e300]}, r"\$.shape\[1\]: expected int"),
        ({"shape": [-7, -5]}, r"\$.shape\[0\]: expected int >= 1"),
        ({"shape": []}, r"\$.shape: expected array of length >= 1"),
        ({"compressor": "gzip"}, r"\$.compressor: expected object \| null, received str"),
        ({"chunks": [3]}, r"chunks is \[3\]"),
        ({"chunks": [3, 0]}, r"\$.chunks\[1\]: expected int >= 1"),
        ({"dimension_separator": "../"}, "dimension_separator is"),
        ({"shape": None}, r"\$.shape: expected array, received null"),
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
    with pytest.raises(FileNotFoundError, match=r"\.zarray: expected an array of Zarr"):
        ZarrArray(tmp_path)
    write_zarr(tmp_path / "a", ARRAY, chunks=(7, 5))
    chunk = tmp_path / "a" / "0.0"
    content = chunk.read_bytes()
    for damaged in (content[:30], b"", b"no gzip", gzip.compress(b"\0" * 10**6)):
        chunk.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"0\.0: expected .*Copy it again"):
            ZarrArray(tmp_path / "a").read()
    chunk.unlink()
    with pytest.raises(FileNotFoundError, match=r"0\.0: expected a file"):
        ZarrArray(tmp_path / "a").read()


def test_chunks_are_held_against_the_array_before_they_are_read(tmp_path: Path) -> None:
    write_zarr(tmp_path / "a", ARRAY, chunks=(3, 2))
    ZarrArray(tmp_path / "a").check_chunks()
    path = tmp_path / "a" / ".zarray"
    metadata = json.loads(path.read_text(encoding="utf-8"))

    def refused(message: str, **changes: Any) -> None:
        path.write_text(json.dumps(metadata | changes), encoding="utf-8")
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            ZarrArray(tmp_path / "a").check_chunks()

    refused("expected 1,000,000,000,000 chunks", shape=[10**6, 10**6], chunks=[1, 1])
    refused("0.0: expected .* for a chunk", shape=[10**9, 9], chunks=[10**9, 9])
    refused(r"3.0: expected a chunk of the array", shape=[27, 2], chunks=[3, 2])
    with (tmp_path / "a" / "0.0").open("ab") as file:
        file.truncate(2**40)  # sparse
    refused("0.0: expected 0 to 1,048 bytes .* found 1,099,511,627,776")
    with pytest.raises(ValueError, match="0.0: expected up to 1,048 bytes"):
        ZarrArray(tmp_path / "a").read()
