"""The tensors of a folder with safetensors files, one or many."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

# Registers bfloat16 with NumPy, in which safetensors gives tensors stored so.
import ml_dtypes  # noqa: F401
import numpy as np
from safetensors import safe_open

from use_st5.convert.weight_source import WeightSource

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

_PIECE = 2**24  # bytes


class SafetensorsSource(WeightSource):
    """`model.safetensors`, or the shards that `model.safetensors.index.json` names.

    Args:
        folder: The folder with the files.

    Raises:
        FileNotFoundError: Neither file is there, or a shard is missing.
        ValueError: The index is damaged, or names a tensor that its shard does not have, or a file
            outside the folder.
    """

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
                f"{self._folder / INDEX}: expected every tensor it names in its shard, "
                f"{len(missing)} are not there, {missing[0]!r} among them."
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return dict(self._shapes)

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        # Opened anew for each: an open file keeps all that was read of it in memory.
        with safe_open(self._homes[name], framework="np") as file:
            return file.get_tensor(name)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces of some rows, a few megabytes each."""
        rows, *row = self._shapes[name] or (1,)
        # At most float32; other dtypes make smaller pieces.
        step = max(1, _PIECE // (4 * math.prod(row)))
        if step >= rows:
            yield self.read(name)
            return
        for start in range(0, rows, step):
            with safe_open(self._homes[name], framework="np") as file:
                yield file.get_slice(name)[start : min(start + step, rows)]

    def _read_header(self, path: Path) -> None:
        try:
            with safe_open(path, framework="np") as file:
                for name in file.keys():  # noqa: SIM118 (no mapping)
                    self._shapes[name] = tuple(file.get_slice(name).get_shape())
                    self._homes[name] = path
        except Exception as error:  # safetensors' own kind is not public
            raise ValueError(
                f"{path}: expected a safetensors file ({type(error).__name__}: {error}). "
                "Copy it again."
            ) from error

    def _files(self) -> dict[str, Path]:
        """Name of a tensor → its file; "" → the only one where there is no index."""
        single, index = self._folder / SINGLE, self._folder / INDEX
        if single.is_file():
            return {"": single}
        if not index.is_file():
            raise FileNotFoundError(self._nothing_here())
        try:
            names = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
            files = {name: self._folder / file for name, file in names.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f'{index}: expected JSON with a "weight_map" ({type(error).__name__}: {error}).'
            ) from error
        for file in files.values():
            if file.parent != self._folder:
                raise ValueError(f"{index}: expected names of files beside it, found {file}.")
            if not file.is_file():
                raise FileNotFoundError(f"{file}: expected a shard that {INDEX} names.")
        return files

    def _nothing_here(self) -> str:
        message = f"{self._folder}: expected {SINGLE} or {INDEX}, found neither."
        if [*self._folder.glob("*.bin")]:
            message += (
                " Loading its .bin files would run code from them, so use_st5 does not: save the "
                "model with safetensors (transformers: model.save_pretrained(folder))."
            )
        return message
