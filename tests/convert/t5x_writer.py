"""Writes T5X checkpoints as T5X does, without its packages: Flax's MessagePack and Zarr 2."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np


def pack(value: Any) -> bytes:
    """Packs a value as MessagePack, as Flax does; lengths take four bytes, which is valid."""
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I", len(value)) + pairs(value)
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, bool) or value is None:
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, list | tuple):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    content = np.ascontiguousarray(value).tobytes()
    triple = b"\x93" + pack(value.shape) + pack(value.dtype.name)
    triple += b"\xc6" + struct.pack(">I", len(content)) + content
    return b"\xc9" + struct.pack(">I", len(triple)) + b"\x01" + triple


def pairs(value: dict[str, Any]) -> bytes:
    """Keys and values, without the header of their map."""
    return b"".join(pack(key) + pack(content) for key, content in value.items())


def nested(tensors: dict[str, Any]) -> dict[str, Any]:
    """Turns names with "/" into a tree."""
    tree: dict[str, Any] = {}
    for name, tensor in tensors.items():
        *branches, leaf = name.split("/")
        branch = tree
        for part in branches:
            branch = branch.setdefault(part, {})
        branch[leaf] = tensor
    return tree


def write_file(path: Path, tensors: dict[str, Any]) -> None:
    """Writes the older form: one file."""
    state = {"step": np.array(3, np.int32), "param_states": {"m": np.ones(2, np.float32)}}
    tree = {"version": 3, "optimizer": {"target": nested(tensors), "state": state}}
    path.write_bytes(pack(tree))


def write_folder(folder: Path, tensors: dict[str, np.ndarray], *, chunk: int = 3) -> None:
    """Writes the form with a folder of chunks for each matrix; vectors are in the index."""
    folder.mkdir()
    leaves: dict[str, Any] = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 1:
            leaves[name] = tensor
            continue
        home = "target." + name.replace("/", ".")
        write_zarr(folder / home, tensor, chunks=tuple(min(chunk, n) for n in tensor.shape))
        kvstore = {"driver": "gcs", "bucket": "b", "path": f"t5/checkpoint_1/{home}/"}
        leaves[name] = {"driver": "zarr", "kvstore": kvstore, "metadata": {}}
    write_file(folder / "checkpoint", leaves)


def write_zarr(
    folder: Path, array: np.ndarray, *, chunks: tuple[int, ...], compressed: bool = True
) -> None:
    """Writes one array; chunks at its borders are as large as the others."""
    folder.mkdir()
    metadata = {
        "zarr_format": 2, "shape": array.shape, "chunks": chunks, "order": "C", "filters": None,
        "dtype": "bfloat16" if array.dtype.name == "bfloat16" else array.dtype.str,
        "compressor": {"id": "gzip", "level": 1} if compressed else None, "fill_value": None,
    }  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(metadata), encoding="utf-8")
    counts = [-(-n // c) for n, c in zip(array.shape, chunks, strict=True)]
    padded = np.pad(
        array, [(0, n * c - s) for n, c, s in zip(counts, chunks, array.shape, strict=True)]
    )
    for numbers in itertools.product(*map(range, counts)):
        area = tuple(slice(n * c, (n + 1) * c) for n, c in zip(numbers, chunks, strict=True))
        content = np.ascontiguousarray(padded[area]).tobytes()
        name = ".".join(map(str, numbers))
        (folder / name).write_bytes(gzip.compress(content) if compressed else content)
