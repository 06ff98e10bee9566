"""An array in the layout of Zarr 2, as T5X stores the large ones."""

from __future__ import annotations

import itertools
import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Registers bfloat16 with NumPy.
import ml_dtypes  # noqa: F401
import numpy as np

METADATA = ".zarray"

# zlib finds out by itself whether it is gzip's or its own format.
_GZIP_OR_ZLIB = 47


class ZarrArray:
    """A folder with `.zarray` and a file for each chunk (`0.0`, `1.0` …), plain or gzip.

    T5X writes no more of Zarr than that, which this reads; the packages zarr and tensorstore would
    bring compressors of native code that no T5X checkpoint uses.

    Args:
        folder: The folder.

    Raises:
        FileNotFoundError: It has no `.zarray`.
        ValueError: The array is stored in another way.

    Attributes:
        shape: Its shape.
        dtype: Of its numbers.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / METADATA
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected an array of Zarr, found no such file.")
        try:
            metadata = json.loads(path.read_text(encoding="utf-8"))
            self.shape = tuple(int(length) for length in metadata["shape"])
            self.dtype = np.dtype(metadata["dtype"])
            self._chunk = tuple(int(length) for length in metadata["chunks"])
            self._compressed = metadata["compressor"] is not None
            self._separator = metadata.get("dimension_separator", ".")
            self._check(metadata)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}: expected an array as T5X stores it, Zarr 2 with chunks in plain bytes or "
                f"gzip ({type(error).__name__}: {error})."
            ) from error

    def rows(self) -> Iterator[np.ndarray]:
        """The array in pieces along its first axis, each as long as a chunk."""
        lengths = list(zip(self.shape, self._chunk, strict=True))
        first, *others = (range(-(-length // chunk)) for length, chunk in lengths)
        for row in first:
            rows = min(self._chunk[0], self.shape[0] - row * self._chunk[0])
            piece = np.empty((rows, *self.shape[1:]), self.dtype)
            for column in itertools.product(*others):
                corner = [n * chunk for n, chunk in zip(column, self._chunk[1:], strict=True)]
                ends = map(sum, zip(corner, self._chunk[1:], strict=True))
                part = piece[(slice(None), *map(slice, corner, ends))]
                part[...] = self._read((row, *column))[tuple(map(slice, part.shape))]
            yield piece

    def read(self) -> np.ndarray:
        """The array."""
        return np.concatenate([*self.rows()])

    def _read(self, numbers: tuple[int, ...]) -> np.ndarray:
        """One chunk, whole even where it reaches beyond the array."""
        path = self._folder / self._separator.join(map(str, numbers))
        if not path.is_file():
            # Zarr leaves out chunks of nothing but the fill value; weights are never that.
            raise FileNotFoundError(f"{path}: expected a chunk of the array. Copy it again.")
        content = path.read_bytes()
        size = math.prod(self._chunk) * self.dtype.itemsize
        try:
            if self._compressed:
                # One byte more than there may be is enough to see that there are too many.
                content = zlib.decompressobj(_GZIP_OR_ZLIB).decompress(content, size + 1)
        except zlib.error as error:
            raise ValueError(f"{path}: expected gzip ({error}). Copy it again.") from error
        if len(content) != size:
            raise ValueError(
                f"{path}: expected {size:,} bytes of numbers, found "
                f"{'more' if len(content) > size else f'{len(content):,}'}. Copy it again."
            )
        return np.frombuffer(content, self.dtype).reshape(self._chunk)

    def _check(self, metadata: dict[str, Any]) -> None:
        found = {
            "zarr_format": metadata["zarr_format"] == 2,
            "compressor": (metadata["compressor"] or {"id": "gzip"})["id"] in ("gzip", "zlib"),
            "filters": not metadata.get("filters"),
            "order": metadata["order"] == "C",
            "dimension_separator": self._separator in (".", "/"),
            "dtype": not self.dtype.hasobject,
            "chunks": len(self._chunk) == len(self.shape) and all(c > 0 for c in self._chunk),
        }
        if wrong := [
            f"{name} is {metadata.get(name)!r}" for name, right in found.items() if not right
        ]:
            raise ValueError(", ".join(wrong))
