"""The files of a saved index, of which nothing is given before it was checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from use_st5._records import InnerPath
from use_st5.search.approximate import NearGraph
from use_st5.search.checked_files import CheckedFile, read_hashes
from use_st5.search.graph_file import check_graph_file
from use_st5.search.index_files import (
    CODES,
    FIRST_LOOK,
    GRAPH,
    HASHES,
    REMEDY,
    SCALES,
    STARTS,
    TEXTS,
    VECTORS,
    IndexRecord,
)
from use_st5.search.quantized import BinaryRows, Int8Rows

# Rows that are looked at together.
_BLOCK = 16_384
# By how much the square of the length of a row of float32 may differ from 1.
_ROUNDED = 1e-3


class OpenIndex:
    """The files of an index.

    A file that is read whole is held against its hash at once; of the vectors, the codes and the
    texts a block is when it is first needed. An index of use_st5 0.2 has no hashes: of it orders
    and ranges are checked. A vector is finite and of length 1 or 0, a text begins where the one
    before ends, and a graph's edges lead to its rows.

    Args:
        folder: The index.

    Attributes:
        record: What it says about itself.
        first_look: What is looked through before the vectors are; None: nothing.

    Raises:
        FileNotFoundError: The folder holds no index.
        ValueError: The record, or a file that is read at once, is damaged.
        ImportError: It is a graph, and FAISS is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.record = record = IndexRecord.read(folder)
        sizes = {str(name): size for name, size in record.files.items() if name != HASHES}
        hashes = {}
        if record.hashes:
            hashes = read_hashes(folder / HASHES, sizes, record.hashes, remedy=REMEDY)
        self._files = {
            name: CheckedFile(folder / name, hashes.get(name), remedy=REMEDY) for name in sizes
        }
        self._vectors = self._mapped(VECTORS, (record.rows, record.dimension), "float32")
        self._all_are_units = bool(record.hashes)
        self.first_look = self._first_look()
        self._starts = self._read_starts() if TEXTS in record.files else None

    @property
    def has_texts(self) -> bool:
        """Whether the texts are kept."""
        return self._starts is not None

    def check(self) -> None:
        """Reads what was not read yet of all files, and checks it.

        Raises:
            ValueError: A file is damaged.
        """
        for file in self._files.values():
            file.check()
        self.vectors()
        if self.has_texts and not self.record.hashes:
            for row in range(self.record.rows):
                self.text(row)

    def check_first_look(self) -> None:
        """Checks what a search looks through first; it reads all of it, each time.

        Raises:
            ValueError: A file is damaged.
        """
        for name in FIRST_LOOK[self.record.kind]:
            self._file(name).check()

    def vectors(self, rows: np.ndarray | None = None) -> np.ndarray:
        """The vectors, float32 `[rows, dim]`, mapped.

        Args:
            rows: Those that will be read, int64, in any order; None: all.

        Raises:
            ValueError: One of them is damaged.
        """
        file = self._file(VECTORS)
        if rows is None:
            file.check()
            if not self._all_are_units:
                self._check_units(np.arange(self.record.rows))
            self._all_are_units = True
            return self._vectors
        rows = np.unique(rows)
        width = self._vectors.itemsize * self.record.dimension
        starts = self._vectors.offset + width * rows
        file.check_bytes(starts, starts + width)
        if not self._all_are_units:
            self._check_units(rows)
        return self._vectors

    def text(self, row: int) -> str:
        """The text of a row of an index that has texts.

        Raises:
            ValueError: Its bytes are damaged.
        """
        assert self._starts is not None
        file, stretch = self._file(TEXTS), self._starts[row : row + 2]
        file.check_bytes(stretch[:1], stretch[1:])
        start, end = stretch.tolist()
        with file.path.open("rb") as stream:
            stream.seek(start)
            content = stream.read(end - start)
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{file.path}: expected UTF-8 in bytes {start} to {end}, found others. {REMEDY}"
            ) from error

    def _file(self, name: str) -> CheckedFile:
        return self._files[name]

    def _check_units(self, rows: np.ndarray) -> None:
        """Checks that some rows, rising, are finite and of length 1 or 0."""
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            some = self._vectors[part]
            squares = np.einsum("nd,nd->n", some, some)
            wrong = np.flatnonzero(~((np.abs(squares - 1) < _ROUNDED) | (squares == 0)))
            if len(wrong):
                raise ValueError(
                    f"{self._file(VECTORS).path}: expected finite numbers of length 1 or 0 in each "
                    f"row, found others in row {part[wrong[0]]}. {REMEDY}"
                )

    def _first_look(self) -> Int8Rows | BinaryRows | NearGraph | None:
        kind, rows, dimension = self.record.kind, self.record.rows, self.record.dimension
        if kind == "int8":
            codes = self._mapped(CODES, (rows, dimension), "int8")
            return Int8Rows(codes, self._read_scales())
        if kind == "binary":
            return BinaryRows(self._mapped(CODES, (rows, -(-dimension // 8)), "uint8"), dimension)
        return self._read_graph() if kind == "hnsw" else None

    def _read_scales(self) -> np.ndarray:
        scales = self._mapped(SCALES, (self.record.rows,), "float32")
        file = self._file(SCALES)
        file.check()
        # Of a row of length 1 no number is larger than 1, which becomes 127.
        if not ((scales >= 0) & (scales <= (1 + _ROUNDED) / 127)).all():
            raise ValueError(
                f"{file.path}: expected scales from 0 to 1/127, found others. {REMEDY}"
            )
        return scales

    def _read_graph(self) -> NearGraph:
        file, shape = self._file(GRAPH), (self.record.rows, self.record.dimension)
        file.check()
        try:
            if not file.has_hashes:
                check_graph_file(file.path, rows=shape[0], dimension=shape[1])
            graph = NearGraph.read(file.path)
            if graph.shape != shape:
                raise ValueError(f"{file.path}: expected {shape[0]} rows of {shape[1]}.")
        except ValueError as error:
            raise ValueError(f"{error} {REMEDY}") from error
        return graph

    def _read_starts(self) -> np.ndarray:
        """Where texts begin and the last one ends, in bytes, int64 `[rows + 1]`."""
        starts, file = self._mapped(STARTS, (self.record.rows + 1,), "int64"), self._file(STARTS)
        file.check()
        size = self.record.files[InnerPath(TEXTS)]
        if starts[0] or starts[-1] != size or (np.diff(starts) < 0).any():
            raise ValueError(
                f"{file.path}: expected numbers that rise from 0 to {size}, the bytes of {TEXTS}, "
                f"found others. {REMEDY}"
            )
        return starts

    def _mapped(self, name: str, shape: tuple[int, ...], dtype: str) -> np.memmap:
        """An array of a file, which is not read until it is needed."""
        path = self._folder / name
        try:
            array = np.load(path, mmap_mode="r")
            if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
                raise ValueError(f"found {array.dtype} {list(array.shape)}")
            if array.offset + array.nbytes != path.stat().st_size:
                raise ValueError("found further bytes")
        except Exception as error:  # NumPy's parser of headers raises what it stumbles over
            raise ValueError(
                f"{path}: expected {dtype} {list(shape)} ({error}). {REMEDY}"
            ) from error
        return array
