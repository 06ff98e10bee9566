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
