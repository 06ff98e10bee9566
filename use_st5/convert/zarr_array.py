"""An array in the layout of Zarr 2, as T5X stores the large ones."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from use_st5._records import Positive, read_bounded, read_record
from use_st5.convert.weights import number_dtype

METADATA = ".zarray"

# zlib finds out by itself whether it is gzip's or its own format.
_GZIP_OR_ZLIB = 47


# The most that deflate makes of a byte.
_MOST_DEFLATED = 1032

_REMEDY = (
    "Expected is an array as T5X stores it: Zarr 2, chunks no larger than the array, in plain "
    "bytes or gzip."
)

Lengths = Annotated[list[Positive], msgspec.Meta(min_length=1, max_length=32)]


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
        metadata = read_record(path, _Metadata, remedy=_REMEDY)
        self.shape, self._chunk = tuple(metadata.shape), tuple(metadata.chunks)
        self._compressed = metadata.compressor is not None
        self._separator = metadata.dimension_separator
        if wrong := metadata.wrong():
            raise ValueError(f"{path}: expected another layout, its {wrong[0]}. {_REMEDY}")
        try:
            self.dtype = number_dtype(metadata.dtype)
        except ValueError as error:
            raise ValueError(f"{path}: $.dtype: {error}. {_REMEDY}") from error

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

    def check_chunks(self) -> None:
        """Holds the shape against the files of the chunks, without reading them.

        Raises:
            FileNotFoundError: A chunk is missing.
            ValueError: A file is too small or too large to be its chunk.
        """
        lengths = zip(self.shape, self._chunk, strict=True)
        counts = [-(-length // chunk) for length, chunk in lengths]
        found = sum(1 for path in self._folder.rglob("*") if path.is_file()) - 1  # but `.zarray`
        if math.prod(counts) > found:
            raise FileNotFoundError(
                f"{self._folder}: expected {math.prod(counts):,} chunks of an array "
                f"{list(self.shape)}, found {found:,} files. Copy it again."
            )
        smallest = math.prod(self._chunk) * self.dtype.itemsize
        smallest = smallest // _MOST_DEFLATED if self._compressed else smallest
        for numbers in itertools.product(*map(range, counts)):
            path = self._path(numbers)
            # Zarr leaves out chunks of nothing but the fill value; weights are never that.
            if not path.is_file():
                raise FileNotFoundError(f"{path}: expected a chunk of the array. Copy it again.")
            size = path.stat().st_size
            if not smallest <= size <= self._largest_file():
                raise ValueError(
                    f"{path}: expected {smallest:,} to {self._largest_file():,} bytes for a chunk "
                    f"{list(self._chunk)} of {self.dtype}, found {size:,}. Copy it again."
                )

    def _read(self, numbers: tuple[int, ...]) -> np.ndarray:
        """One chunk, whole even where it reaches beyond the array."""
        path = self._path(numbers)
        size = math.prod(self._chunk) * self.dtype.itemsize
        content = read_bounded(path, limit=self._largest_file(), remedy="Copy it again.")
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

    def _path(self, numbers: tuple[int, ...]) -> Path:
        return self._folder / self._separator.join(map(str, numbers))

    def _largest_file(self) -> int:
        """Bytes of a chunk; deflate adds a little to what it cannot make smaller."""
        size = math.prod(self._chunk) * self.dtype.itemsize
        return size + size // 1000 + 1024 if self._compressed else size


class _Metadata(msgspec.Struct):
    zarr_format: int
    shape: Lengths
    chunks: Lengths
    dtype: str
    compressor: dict[str, Any] | None
    order: str
    filters: list[Any] | None = None
    dimension_separator: str = "."

    def wrong(self) -> list[str]:
        """What T5X never writes."""
        lengths = list(zip(self.chunks, self.shape, strict=False))
        right = {
            "zarr_format": self.zarr_format == 2,
            "compressor": (self.compressor or {"id": "gzip"}).get("id") in ("gzip", "zlib"),
            "filters": not self.filters,
            "order": self.order == "C",
            "dimension_separator": self.dimension_separator in (".", "/"),
            "chunks": len(self.chunks) == len(self.shape) and all(c <= n for c, n in lengths),
        }
        return [f"{name} is {getattr(self, name)!r}" for name, fits in right.items() if not fits]
