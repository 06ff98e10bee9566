"""The tensors of a folder with safetensors files, one or many."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path

# Registers bfloat16 with NumPy: safetensors returns tensors of this dtype.
import ml_dtypes  # noqa: F401
import msgspec
import numpy as np
from safetensors import safe_open

from use_st5.convert.weights import WeightSource
from use_st5.io.records import InnerPath, read_record

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

_PIECE = 2**24  # bytes
_HEADER = 2**22  # bytes: fifty times the header of the largest T5
_AGAIN = "Copy it again."
_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")


class _Index(msgspec.Struct):
    weight_map: dict[str, InnerPath]


class SafetensorsSource(WeightSource):
    """`model.safetensors`, or the shards that `model.safetensors.index.json` names."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.where = os.fspath(folder)
        self._folder = Path(folder)
        files = self._files()
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._homes: dict[str, Path] = {}
        for file in sorted(set(files.values())):
            self._read_header(file)
        if missing := sorted(set(files) - set(self._homes) - {""}):
            raise ValueError(
                f"{self._folder / INDEX}: expected each tensor in the shard that this file names, "
                f"found {len(missing)} missing, such as {missing[0]!r:.200}. {_AGAIN}"
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return dict(self._shapes)

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        # Opened again for each tensor: an open file keeps all that was read from it in memory.
        with safe_open(self._homes[name], framework="np") as file:
            return file.get_tensor(name)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces of some rows, a few megabytes each."""
        rows, *row = self._shapes[name] or (1,)
        # Computed for float32; smaller dtypes make smaller pieces.
        step = max(1, _PIECE // max(1, 4 * math.prod(row)))
        if step >= rows:
            yield self.read(name)
            return
        for start in range(0, rows, step):
            with safe_open(self._homes[name], framework="np") as file:
                yield file.get_slice(name)[start : min(start + step, rows)]

    def _read_header(self, path: Path) -> None:
        _check_header_size(path)
        dtypes = {}
        try:
            with safe_open(path, framework="np") as file:
                for name in file.keys():  # noqa: SIM118 (no mapping)
                    tensor = file.get_slice(name)
                    self._shapes[name], dtypes[name] = tuple(tensor.get_shape()), tensor.get_dtype()
                    self._homes[name] = path
        except Exception as error:  # safetensors' own class is not public
            raise ValueError(
                f"{path}: expected a safetensors file ({type(error).__name__}: {error!s:.200}). "
                f"{_AGAIN}"
            ) from error
        for name, dtype in dtypes.items():
            if dtype not in _DTYPES:
                raise ValueError(
                    f"{path}: {name:.200}: expected numbers in one of {', '.join(_DTYPES)}, "
                    f"received {dtype}. Save the model in float32."
                )

    def _files(self) -> dict[str, Path]:
        """Name of a tensor → its file; if there is no index, "" → the only file."""
        single, index = self._folder / SINGLE, self._folder / INDEX
        if single.is_file():
            return {"": single}
        if not index.is_file():
            raise FileNotFoundError(self._nothing_here())
        names = read_record(index, _Index, remedy=_AGAIN, limit=_HEADER).weight_map
        files = {name: self._folder / file for name, file in names.items()}
        for file in files.values():
            if file.parent != self._folder:
                raise ValueError(
                    f"{index}: expected files in the same folder, found {file}. {_AGAIN}"
                )
            if not file.is_file():
                raise FileNotFoundError(
                    f"{file}: expected this shard of {INDEX}, found none. {_AGAIN}"
                )
        return files

    def _nothing_here(self) -> str:
        message = f"{self._folder}: expected {SINGLE} or {INDEX}, found neither."
        if [*self._folder.glob("*.bin")]:
            message += (
                " use_st5 does not load .bin files, because they can run code. Save the model with "
                "safetensors (transformers: model.save_pretrained(folder))."
            )
        return message


def _check_header_size(path: Path) -> None:
    """Checks the header's size, with which the file begins: the header is read as a whole."""
    with path.open("rb") as file:
        begin = file.read(8)
    (size,) = struct.unpack("<Q", begin) if len(begin) == 8 else (0,)
    if not 0 < size <= min(_HEADER, path.stat().st_size - 8):
        raise ValueError(
            f"{path}: expected a safetensors file with a header of 1 to {_HEADER:,} bytes, found "
            f"{size:,} bytes in a file of {path.stat().st_size:,} bytes. {_AGAIN}"
        )
