"""The tensors of a T5X checkpoint."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from use_st5.convert.msgpack_index import StoredArray, read_msgpack_index
from use_st5.convert.weights import WeightSource
from use_st5.convert.zarr_array import ZarrArray

INDEX = "checkpoint"

# flax.serialization stores arrays of a gigabyte and more as maps of flat pieces.
_CHUNKED = "__msgpack_chunked_array__"


class T5XSource(WeightSource):
    """The weights in a folder `checkpoint_N`, or in the single file that T5X once wrote.

    The folder's file `checkpoint` is MessagePack: it holds the small arrays, and for the large ones
    the names of folders beside it, in Zarr's layout. The older file holds them all. Names are paths
    below "target", such as `encoder/layers_0/mlp/wi/kernel`; the optimizer's state is left out.
    Kernels of attention that have an axis for the heads are given without it.

    Args:
        path: The folder or the file.

    Raises:
        FileNotFoundError: There is none, or an array's folder is missing.
        ValueError: It is damaged, or no T5X checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.where = os.fspath(path)
        index = Path(path, INDEX) if Path(path).is_dir() else Path(path)
        if not index.is_file():
            raise FileNotFoundError(f"{index}: expected a T5X checkpoint, found no file.")
        self._arrays = dict(_arrays(_target(read_msgpack_index(index), index), "", index.parent))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        return {name: _joined(name, array.shape) for name, array in self._arrays.items()}

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        array = self._arrays[name]
        return array.read().reshape(_joined(name, array.shape))

    def check_stored(self, names: Iterable[str]) -> None:
        """Holds the shapes of tensors against the bytes that are stored for them."""
        for name in names:
            if isinstance(array := self._arrays[name], ZarrArray):
                array.check_chunks()

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis."""
        array = self._arrays[name]
        shape = _joined(name, array.shape)
        if not isinstance(array, ZarrArray):
            yield self.read(name)
            return
        for piece in array.rows():
            yield piece.reshape(-1, *shape[1:])


class _Chunked:
    """An array in pieces of itself, flattened."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.shape = tuple(content["shape"][str(n)] for n in range(len(content["shape"])))
        chunks = content["chunks"]
        self._pieces: list[StoredArray] = [chunks[str(n)] for n in range(len(chunks))]
        found = sum(math.prod(piece.shape) for piece in self._pieces)
        if found != math.prod(self.shape):
            raise ValueError(f"expected the pieces of an array {list(self.shape)}, found {found}")

    def read(self) -> np.ndarray:
        """The array."""
        flat = np.empty(math.prod(self.shape), self._pieces[0].dtype)
        start = 0
        for piece in self._pieces:
            end = start + math.prod(piece.shape)
            flat[start:end] = piece.read()
            start = end
        return flat.reshape(self.shape)


def _target(content: Any, index: Path) -> dict[str, Any]:
    """The part of the tree that holds the weights."""
    try:
        return content["optimizer"]["target"]
    except (KeyError, TypeError) as error:
        found = ", ".join(content) if isinstance(content, dict) else type(content).__name__
        raise ValueError(
            f'{index}: expected the weights of T5X under "optimizer/target", found {found}.'
        ) from error


def _arrays(tree: Any, name: str, folder: Path) -> Iterator[tuple[str, Any]]:
    """Name and array of each leaf."""
    if isinstance(tree, StoredArray):
        yield name, tree
    elif not isinstance(tree, dict):
        raise ValueError(f"{folder / INDEX}: expected an array at {name}, found {tree!r}.")
    elif _CHUNKED in tree:
        yield name, _chunked(tree, name, folder)
    elif "kvstore" in tree:
        yield name, ZarrArray(folder / _folder_name(tree["kvstore"], name, folder))
    else:
        for key, branch in tree.items():
            yield from _arrays(branch, f"{name}/{key}".removeprefix("/"), folder)


def _chunked(tree: dict[str, Any], name: str, folder: Path) -> _Chunked:
    try:
        return _Chunked(tree)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(
            f"{folder / INDEX}: expected an array in pieces at {name} "
            f"({type(error).__name__}: {error}). Copy it again."
        ) from error


def _folder_name(kvstore: Any, name: str, folder: Path) -> str:
    """The folder beside the index, whatever path it had where the checkpoint was written.

    Paths of released checkpoints begin with a bucket.
    """
    path = kvstore.get("path") if isinstance(kvstore, dict) else None
    found = Path(path).name if isinstance(path, str) else ""
    if found in ("", "..") or "\0" in found or "\\" in found:
        raise ValueError(
            f"{folder / INDEX}: expected the path of a folder in kvstore at {name}, found {path!r}."
        )
    return found


def _joined(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without an axis of its own for the attention's heads."""
    if len(shape) != 3:
        return shape
    if name.endswith("/out/kernel"):
        return (shape[0] * shape[1], shape[2])
    if name.endswith(("/query/kernel", "/key/kernel", "/value/kernel")):
        return (shape[0], shape[1] * shape[2])
    return shape
