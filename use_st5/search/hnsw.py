"""A graph of near vectors by FAISS; its search time hardly grows with the number of rows.

Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
Navigable Small World graphs" (arXiv 1603.09320). FAISS (Meta) is chosen over usearch and hnswlib:
of the three it is the most used and the longest maintained, and it has wheels for every system that
TensorFlow has wheels for; hnswlib has to be compiled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from use_st5._imports import require

# Neighbours of a node, and the number of nodes that are examined to find them. Doubling the second
# number changed no recall that was measured.
_NEIGHBOURS, _EFFORT = 32, 40
# The number of rows from which the ranges of the numbers are learnt.
_SAMPLE = 20_000
_BLOCK = 16_384

# Bytes of FAISS's header of an index: dimension, rows, two numbers that nothing reads, whether it
# is trained, and the metric.
_HEADER = "<i4,<i8,<i8,<i8,u1,<i4"
_INNER_PRODUCT, _EIGHT_BITS = 0, 0
# No level of a graph is higher: FAISS draws levels, and each is 32 times rarer than the one below.
_MOST_LEVELS = 64


class NearGraph:
    """A graph with one byte per number; its results should be scored again with the vectors.

    Args:
        index: The index of FAISS.
    """

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def of(cls, vectors: np.ndarray) -> NearGraph:
        """Builds the graph of vectors `[rows, dim]` of length 1, read a block at a time.

        It needs one byte of memory per number and about 270 bytes per row. With several threads,
        two builds may differ in some edges.

        Raises:
            ImportError: FAISS is not installed.
        """
        faiss = require("faiss", "search")
        index = faiss.IndexHNSWSQ(
            vectors.shape[1],
            faiss.ScalarQuantizer.QT_8bit,
            _NEIGHBOURS,
            faiss.METRIC_INNER_PRODUCT,
        )
        index.hnsw.efConstruction = _EFFORT
        sample = np.linspace(0, len(vectors) - 1, min(len(vectors), _SAMPLE)).astype(np.int64)
        index.train(np.ascontiguousarray(vectors[sample], np.float32))
        for start in range(0, len(vectors), _BLOCK):
            index.add(np.ascontiguousarray(vectors[start : start + _BLOCK], np.float32))
        return cls(index)

    @classmethod
    def read(cls, path: Path) -> NearGraph:
        """Reads the graph of a file.

        Raises:
            ImportError: FAISS is not installed.
            ValueError: The file holds no graph.
        """
        faiss = require("faiss", "search")
        try:
            return cls(faiss.read_index(str(path)))
        except RuntimeError as error:
            raise ValueError(f"{path}: expected a graph of FAISS, found other bytes.") from error

    def write(self, path: Path) -> None:
        """Writes the graph to a file."""
        require("faiss", "search").write_index(self._index, str(path))

    @property
    def shape(self) -> tuple[int, int]:
        """`(rows, dim)`."""
        return self._index.ntotal, self._index.d

    def near(self, queries: np.ndarray, *, count: int) -> np.ndarray:
        """Returns rows near each query, int64 `[queries, count]`; −1 if fewer were found."""
        faiss = require("faiss", "search")
        effort = faiss.SearchParametersHNSW(efSearch=count)
        vectors = np.ascontiguousarray(queries, np.float32)
        return self._index.search(vectors, count, params=effort)[1]


def check_graph_file(path: Path, *, rows: int, dimension: int) -> None:
    """Checks that a file holds a graph as `NearGraph` writes it, all numbers in their ranges.

    FAISS itself would allocate memory for any length in the file, and follow an edge to any place.

    Args:
        path: The file.
        rows: Rows of the graph.
        dimension: Numbers in a vector.

    Raises:
        ValueError: The file holds something else; the message says what.
    """
    fields = _Fields(path)
    fields.expect("the kind of graph", fields.text(4), "IHNs")
    _check_header(fields, rows, dimension)
    _check_edges(fields, rows)
    fields.expect("the kind of codes", fields.text(4), "IxSQ")
    _check_header(fields, rows, dimension)
    fields.expect("the kind of numbers", fields.number("<i4"), _EIGHT_BITS)
    fields.skip(8)  # How the ranges were found.
    fields.expect("the dimension of the codes", fields.number("<u8"), dimension)
    fields.expect("the bytes of a code", fields.number("<u8"), dimension)
    ranges = fields.vector("<f4")
    fields.expect("ranges of numbers", len(ranges), 2 * dimension)
    fields.require("finite ranges", bool(np.isfinite(ranges).all()))
    fields.expect("codes", len(fields.vector("u1")), rows * dimension)
    fields.require("no further bytes", fields.left == 0)


def _check_header(fields: _Fields, rows: int, dimension: int) -> None:
    found_dimension, found_rows, _, _, trained, metric = fields.record(_HEADER)
    fields.expect("the dimension", found_dimension, dimension)
    fields.expect("the rows", found_rows, rows)
    fields.expect("a trained index", trained, 1)
    fields.expect("the metric", metric, _INNER_PRODUCT)


def _check_edges(fields: _Fields, rows: int) -> None:
    """Checks the levels, the beginnings of each row's neighbours, and the neighbours themselves."""
    fields.vector("<f8")
    starts_of_level, levels = fields.vector("<i4"), fields.vector("<i4")
    offsets, neighbours = fields.vector("<u8"), fields.vector("<i4")
    entry, top_level, _, _, _ = fields.record("<i4,<i4,<i4,<i4,<i4")
    level_count = len(starts_of_level) - 1
    fields.require("levels that grow", 1 <= level_count <= _MOST_LEVELS)
    fields.require("levels that grow", starts_of_level[0] == 0)
    fields.require("levels that grow", bool((np.diff(starts_of_level) > 0).all()))
    fields.expect("a level of each row", len(levels), rows)
    fields.require("levels in their range", levels.min() >= 1 and levels.max() <= level_count)
    fields.expect("a begin of each row's neighbours", len(offsets), rows + 1)
    widths = starts_of_level[levels].astype(np.uint64)
    fields.require("neighbours in order", offsets[0] == 0 and offsets[-1] == len(neighbours))
    fields.require("neighbours in order", bool((np.diff(offsets) == widths).all()))
    inside = bool((neighbours >= -1).all() and (neighbours < rows).all())
    fields.require("neighbours that are rows", inside)
    fields.require("a first row", 0 <= entry < rows)
    fields.require("a highest level", top_level == int(levels[entry]) - 1 == int(levels.max()) - 1)


class _Fields:
    """Fields of a file, one after the other; none may be longer than the file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, "u1")
        self._place = 0

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self._content) - self._place

    def skip(self, size: int) -> np.ndarray:
        """The next bytes, uint8 `[size]`."""
        self.require("a longer file", size <= self.left)
        self._place += size
        return self._content[self._place - size : self._place]

    def text(self, size: int) -> str:
        """The next bytes as characters."""
        return self.skip(size).tobytes().decode("latin-1")

    def number(self, kind: str) -> int:
        """The next number."""
        return int(self.skip(np.dtype(kind).itemsize).view(kind)[0])

    def record(self, kinds: str) -> tuple[Any, ...]:
        """Returns the next numbers; `kinds` names their types, separated by commas."""
        kind = np.dtype(kinds)
        return tuple(np.frombuffer(self.skip(kind.itemsize).tobytes(), kind)[0].tolist())

    def vector(self, kind: str) -> np.ndarray:
        """Returns the next list of numbers; in the file its length stands before it."""
        size = self.number("<u8") * np.dtype(kind).itemsize
        content = self.skip(size)
        # The numbers may be unaligned in the file: NumPy reads them, only more slowly.
        return content.view(kind)

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Refuses the file unless two values are equal."""
        if found != wanted:
            raise ValueError(f"{self._path}: expected {what} to be {wanted}, found {found!r}")

    def require(self, what: str, holds: object) -> None:
        """Refuses the file unless a condition holds."""
        if not holds:
            raise ValueError(f"{self._path}: expected {what}, found another content")
