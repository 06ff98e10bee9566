"""The tensors of a T5X checkpoint: Flax's MessagePack and arrays of Zarr."""

from __future__ import annotations

import contextlib
import itertools
import math
import mmap
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

# Registers bfloat16 with NumPy.
import ml_dtypes  # noqa: F401
import msgspec
import numpy as np

from use_st5.convert.weights import WeightSource
from use_st5.io.records import Positive, named_errors, read_bounded, read_record

INDEX = "checkpoint"

_AGAIN = "Copy it again."


class T5XSource(WeightSource):
    """The weights in a folder `checkpoint_N`, or in the single file that older T5X versions wrote.

    The folder's file `checkpoint` is MessagePack: it contains the small arrays, and for the large
    arrays the names of folders next to it, in Zarr's layout. The older file contains all arrays.
    Names are paths below "target", such as `encoder/layers_0/mlp/wi/kernel`; the optimizer's state
    is left out. If a kernel of attention has an axis for the heads, it is merged into the next one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.where = os.fspath(path)
        index = Path(path, INDEX) if Path(path).is_dir() else Path(path)
        try:
            target = read_msgpack_index(index)["optimizer"]["target"]
            self._arrays = dict(_arrays(target, "", index.parent))
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            reason = f"{type(error).__name__}: {error!s:.200}"
            what = 'expected the weights of T5X under "optimizer/target"'
            raise ValueError(f"{index}: {what} ({reason}).") from error

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return {name: _joined(name, array.shape) for name, array in self._arrays.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        pieces = [*self.pieces(name)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis."""
        array = self._arrays[name]
        shape = _joined(name, array.shape)
        if not isinstance(array, ZarrArray):
            yield array.copy().reshape(shape)
            return
        for piece in array.rows():
            yield piece.reshape(-1, *shape[1:])


def _arrays(tree: Any, name: str, folder: Path) -> Iterator[tuple[str, Any]]:
    """Name and array of each leaf; the tree may be anything."""
    if isinstance(tree, np.ndarray):
        yield name, tree
    elif not isinstance(tree, dict):
        raise TypeError(f"no array at {name:.200}, but {tree!r:.200}")
    elif "kvstore" in tree:
        # The last part of the stored path, which begins with a bucket in released checkpoints.
        stored = tree["kvstore"]["path"]
        home = Path(stored).name
        if home in ("", "..") or "\0" in home or "\\" in home:
            raise TypeError(f"no folder of an array at {name:.200}, but {stored!r:.200}")
        yield name, ZarrArray(folder / home)
    else:
        for key, branch in tree.items():
            yield from _arrays(branch, f"{name}/{key}".removeprefix("/"), folder)


def _joined(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after the axis of the attention's heads is merged with its neighbour."""
    if len(shape) != 3:
        return shape
    if name.endswith("/out/kernel"):
        return (shape[0] * shape[1], shape[2])
    if name.endswith(("/query/kernel", "/key/kernel", "/value/kernel")):
        return (shape[0], shape[1] * shape[2])
    return shape


# flax.serialization: arrays and scalars of NumPy are MessagePack extensions, each a triple (shape,
# name of the dtype, bytes).
_NUMBERS = re.compile(r"bfloat16|float(16|32|64)|u?int(8|16|32|64)|bool|\|b1|[<>|=]?[fiu][1248]")
_Triple = tuple[list[Annotated[int, msgspec.Meta(ge=0)]], str, memoryview]


def read_msgpack_index(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a file; its arrays are views of the file, read when they are used.

    Extensions other than Flax's arrays do not occur in checkpoints and are refused.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return {name: _tree(part) for name, part in _parts(content).items()}
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, MemoryError) as error:
        reason = f"{type(error).__name__}: {error!s:.200}"
        what = "expected a checkpoint written by Flax in MessagePack"
        raise ValueError(f"{path}: {what} ({reason}).") from error


# Decodes a map, but not its values: a file of zeros that claims a list of billions is not read.
_parts = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode
_Scalars = list[int | float | str | bool | None]
_list = msgspec.msgpack.Decoder(Annotated[_Scalars, msgspec.Meta(max_length=1_000)]).decode


def _tree(content: msgspec.Raw) -> Any:
    first = memoryview(content)[0]
    if first >> 4 == 0x8 or first in (0xDE, 0xDF):  # a map
        return {name: _tree(part) for name, part in _parts(content).items()}
    if first >> 4 == 0x9 or first in (0xDC, 0xDD):
        return _list(content)
    return msgspec.msgpack.decode(content, ext_hook=_array)


def _number_dtype(name: str) -> np.dtype:
    """The dtype of numbers of this name; others, such as that of objects, are refused."""
    if _NUMBERS.fullmatch(name):
        with contextlib.suppress(TypeError):  # such as "f1"
            return np.dtype(name)
    raise ValueError(f"expected a dtype of numbers, such as float32, received {name!r:.200}")


def _array(kind: int, content: memoryview) -> np.ndarray:
    shape, name, numbers = msgspec.msgpack.decode(content, type=_Triple)
    return np.frombuffer(numbers, _number_dtype(name)).reshape(shape)


_METADATA = ".zarray"
# With this value zlib detects whether the format is gzip's or its own.
_GZIP_OR_ZLIB = 47
# The most bytes that deflate packs into one byte.
_MOST_DEFLATED = 1032
_REMEDY = (
    "T5X writes arrays as Zarr 2, with chunks that are not larger than the array, as plain bytes "
    "or gzip. Copy the checkpoint again."
)
_Lengths = Annotated[list[Positive], msgspec.Meta(min_length=1, max_length=32)]


class _Metadata(msgspec.Struct):
    zarr_format: Literal[2]
    shape: _Lengths
    chunks: _Lengths
    dtype: str
    compressor: dict[str, Any] | None
    order: Literal["C"]
    filters: Annotated[list[Any], msgspec.Meta(max_length=0)] | None = None
    dimension_separator: Literal[".", "/"] = "."


class ZarrArray:
    """A folder with `.zarray` and a file for each chunk (`0.0`, `1.0` …), plain or gzip.

    T5X uses no more of Zarr than this: no compressors in native code.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        path = folder / _METADATA
        metadata = read_record(path, _Metadata, remedy=_REMEDY)
        self.shape, self._chunk = tuple(metadata.shape), tuple(metadata.chunks)
        self._compressed = metadata.compressor is not None
        self._separator = metadata.dimension_separator
        lengths = zip(self._chunk, self.shape, strict=False)
        fits = len(self._chunk) == len(self.shape) and all(one <= all_ for one, all_ in lengths)
        packed = (metadata.compressor or {"id": "gzip"}).get("id")
        with named_errors(path, _REMEDY):
            self.dtype = _number_dtype(metadata.dtype)
            if not fits or packed not in ("gzip", "zlib"):
                raise ValueError(f"chunks {self._chunk} of {self.shape}, packed by {packed!r:.80}.")
        self._size = math.prod(self._chunk) * self.dtype.itemsize
        # The most bytes of a file; deflate adds a little to data that it cannot shrink.
        self._largest = self._size + (self._size // 1000 + 1024) * self._compressed
        # The shape is compared with the files before memory is taken. Zarr leaves out chunks that
        # contain only the fill value; chunks of weights never do.
        files = [path for path in folder.rglob("*") if path.name != _METADATA]
        stored = sum(min(path.stat().st_size, self._largest) for path in files if path.is_file())
        pairs = zip(self.shape, self._chunk, strict=True)
        count = math.prod(-(-length // chunk) for length, chunk in pairs)
        least = count * (self._size // _MOST_DEFLATED if self._compressed else self._size)
        if len(files) < count or stored < least:
            size = f"{len(files):,} of {count:,} chunks, {stored:,} of {least:,} bytes"
            raise ValueError(f"{folder}: found {size}. {_AGAIN}")

    def rows(self) -> Iterator[np.ndarray]:
        """The array in pieces along its first axis, each as long as a chunk."""
        lengths = list(zip(self.shape, self._chunk, strict=True))
        first_axis, *other_axes = (range(-(-length // chunk)) for length, chunk in lengths)
        for row in first_axis:
            rows = min(self._chunk[0], self.shape[0] - row * self._chunk[0])
            piece = np.empty((rows, *self.shape[1:]), self.dtype)
            for column in itertools.product(*other_axes):
                corner = [n * chunk for n, chunk in zip(column, self._chunk[1:], strict=True)]
                ends = map(sum, zip(corner, self._chunk[1:], strict=True))
                part = piece[(slice(None), *map(slice, corner, ends))]
                part[...] = self._read((row, *column))[tuple(map(slice, part.shape))]
            yield piece

    def _read(self, numbers: tuple[int, ...]) -> np.ndarray:
        """Reads a whole chunk, including any part that reaches beyond the array."""
        path = self._folder / self._separator.join(map(str, numbers))
        content = read_bounded(path, limit=self._largest, remedy=_AGAIN)
        try:
            if self._compressed:
                # One byte more than allowed is enough to see that there are too many.
                content = zlib.decompressobj(_GZIP_OR_ZLIB).decompress(content, self._size + 1)
            return np.frombuffer(content, self.dtype).reshape(self._chunk)
        except (zlib.error, ValueError) as error:
            raise ValueError(f"{path}: {error}, expected a chunk of {_REMEDY}") from error
