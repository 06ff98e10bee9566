"""The folder of a saved index: its files, and their checks before they are used.

The bytes of each file are compared with hashes: small files at once, mapped files block by block,
each block when it is first read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from use_st5._records import Count, InnerPath, Positive, read_record
from use_st5._vectors import unit_rows
from use_st5.search.hnsw import NearGraph, check_graph_file

Kind = Literal["exact", "hnsw"]

_FORMAT = 1
_RECORD, VECTORS, GRAPH = "index.json", "vectors.npy", "graph.faiss"
TEXTS, STARTS, HASHES = "texts.utf8", "starts.npy", "hashes.bin"
# Other files of indexes of the kinds "int8" and "binary"; no search reads them.
_OLD = ("codes.npy", "scales.npy")
REMEDY = "Make the index again with `use-st5 index … --overwrite` or VectorIndex.build."
# The number of rows that are written or checked together.
_ROWS = 16_384
# The allowed difference from 1 of the squared length of a row of float32.
_ROUNDED = 1e-3
# Bytes that share a hash. A search that scores a few rows reads a block around each; the hashes
# are a 4,096th of the files.
_BLOCK = 2**16
_DIGEST = 16  # bytes of a hash of SHA-256 that are kept


@dataclass(frozen=True, kw_only=True)
class IndexRecord:
    """The record of an index, `index.json`, which is written last.

    Attributes:
        kind: "hnsw" has a graph; all others are searched exactly. use_st5 0.2 wrote "int8" and
            "binary", too.
        model: Name of the model that made the vectors.
        model_hash: The `identity` of the model.
        dimension: Numbers in a vector.
        rows: Number of vectors.
        files: The bytes of each file.
        hashes: A hash of each file, and of the record itself; an index of use_st5 0.2 has none.
        format: Version of the layout.
    """

    kind: Literal["exact", "hnsw", "int8", "binary"]
    model: str
    model_hash: str
    dimension: Positive
    rows: Positive
    files: dict[InnerPath, Count] = dataclasses.field(default_factory=dict)
    hashes: dict[str, str] = dataclasses.field(default_factory=dict)
    format: int = _FORMAT

    def write(self, folder: Path) -> None:
        """Writes the record, with the sizes and the hashes of the files that are there."""
        roots = write_hashes(folder / HASHES, sorted(folder.iterdir()))
        files = {InnerPath(path.name): path.stat().st_size for path in sorted(folder.iterdir())}
        record = dataclasses.replace(self, files=files, hashes=roots)
        roots[_RECORD] = record._own_hash()
        text = json.dumps(dataclasses.asdict(record), indent=1)
        (folder / _RECORD).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> IndexRecord:
        """Reads the record of a folder, and compares the files with their sizes.

        Raises:
            FileNotFoundError: The folder holds no index.
            ValueError: The record is damaged, or a file is missing or of another size.
        """
        path = folder / _RECORD
        if not path.is_file():
            raise FileNotFoundError(
                f"Expected an index in {folder}, found no {_RECORD} there. `use-st5 index` and "
                "VectorIndex.build write one."
            )
        record = read_record(path, cls, remedy=REMEDY, version=_FORMAT)
        has_hashes = bool(record.hashes) or HASHES in record.files
        if has_hashes and record.hashes.get(_RECORD) != record._own_hash():
            raise ValueError(
                f"{path}: expected the record that was written, found another: the file is "
                f"damaged. {REMEDY}"
            )
        texts = (TEXTS, STARTS) if {TEXTS, STARTS} & {*record.files} else ()
        needed_names = {VECTORS, *((GRAPH,) if record.kind == "hnsw" else ()), *texts}
        if missing := sorted(needed_names - {*record.files}):
            raise ValueError(
                f"{path}: $.files: expected {', '.join(missing)}, found none of this name. {REMEDY}"
            )
        for name, size in record.files.items():
            file = folder / name
            file_size = file.stat().st_size if file.is_file() else "no such file"
            if file_size != size:
                raise ValueError(f"{file}: expected {size} bytes, found {file_size}. {REMEDY}")
        return record

    def _own_hash(self) -> str:
        content: dict[str, Any] = dataclasses.asdict(self)
        content["hashes"] = {name: each for name, each in self.hashes.items() if name != _RECORD}
        return text_hash(json.dumps(content, sort_keys=True))


def check_replaceable(folder: Path) -> None:
    """Checks that a new index in a folder replaces nothing but an older index.

    Raises:
        FileExistsError: The folder holds anything else, or it is a file.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"a file"}
    index_names = {_RECORD, VECTORS, GRAPH, TEXTS, STARTS, HASHES, *_OLD}
    if _RECORD not in names or names - index_names:
        raise FileExistsError(
            f"Expected {folder} to be empty or to contain only an index of use_st5, because it "
            "would be replaced. Move the other files away, or choose another folder."
        )


def write_vectors(folder: Path, vectors: np.ndarray, kind: Kind) -> None:
    """Writes vectors, scaled to length 1, and the graph of an index of the kind "hnsw".

    Raises:
        ValueError: They are not finite.
    """
    rows, dimension = vectors.shape
    units = np.lib.format.open_memmap(folder / VECTORS, "w+", np.float32, (rows, dimension))
    for start in range(0, rows, _ROWS):
        part = slice(start, min(start + _ROWS, rows))
        block = np.asarray(vectors[part])
        if not np.isfinite(block).all():
            raise ValueError(
                "vectors: expected finite numbers, received NaN or infinity in rows "
                f"{part.start} to {part.stop - 1}."
            )
        units[part] = unit_rows(block)
    if kind == "hnsw":
        NearGraph.of(units).write(folder / GRAPH)


def write_texts(folder: Path, texts: Sequence[str]) -> None:
    """Writes texts, one after the other, and the positions at which they begin."""
    starts = np.zeros(len(texts) + 1, np.int64)
    with (folder / TEXTS).open("wb") as file:
        for row, text in enumerate(texts):
            starts[row + 1] = starts[row] + file.write(text.encode("utf-8", "surrogatepass"))
    np.save(folder / STARTS, starts)


class OpenIndex:
    """The files of an index.

    A file that is read whole is compared with its hash at once; a block of vectors or texts, when
    it is first needed. An index of use_st5 0.2 has no hashes, so only orders and ranges are
    checked: a vector is finite and of length 1 or 0, a text begins where the previous one ends,
    and a graph's edges lead to its rows.

    Args:
        folder: The index.

    Attributes:
        record: The record of the index.
        graph: The graph of an index of the kind "hnsw"; None for other kinds.

    Raises:
        FileNotFoundError: The folder holds no index.
        ValueError: The record, or a file that is read at once, is damaged.
        ImportError: The index has a graph, and FAISS is not installed.
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
        self.graph = self._read_graph() if record.kind == "hnsw" else None
        self._starts = self._read_starts() if TEXTS in record.files else None

    @property
    def has_texts(self) -> bool:
        """Whether the index stores the texts."""
        return self._starts is not None

    def check(self) -> None:
        """Reads and checks the parts of all files that were not read yet.

        Raises:
            ValueError: A file is damaged.
        """
        for file in self._files.values():
            file.check()
        self.vectors()
        if self.has_texts and not self.record.hashes:
            for row in range(self.record.rows):
                self.text(row)

    def vectors(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Returns all vectors, float32 `[rows, dim]`, mapped.

        Args:
            rows: The rows that will be read, int64, in any order; None: all.

        Raises:
            ValueError: One of these rows is damaged.
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
        """Checks that some rows, in ascending order, are finite and of length 1 or 0."""
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            vectors = self._vectors[part]
            squares = np.einsum("nd,nd->n", vectors, vectors)
            wrong_places = np.flatnonzero(~((np.abs(squares - 1) < _ROUNDED) | (squares == 0)))
            if len(wrong_places):
                raise ValueError(
                    f"{self._file(VECTORS).path}: expected finite numbers of length 1 or 0 in each "
                    f"row, found others in row {part[wrong_places[0]]}. {REMEDY}"
                )

    def _read_graph(self) -> NearGraph:
        file, shape = self._file(GRAPH), (self.record.rows, self.record.dimension)
        file.check()
        try:
            check_graph_file(file.path, rows=shape[0], dimension=shape[1])
            graph = NearGraph.read(file.path)
            if graph.shape != shape:
                raise ValueError(f"{file.path}: expected {shape[0]} rows of {shape[1]}.")
        except ValueError as error:
            raise ValueError(f"{error} {REMEDY}") from error
        return graph

    def _read_starts(self) -> np.ndarray:
        """Returns the bytes at which texts begin and the last one ends, int64 `[rows + 1]`."""
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
        """Maps the array of a file, which is not read until it is needed."""
        path = self._folder / name
        try:
            array = np.load(path, mmap_mode="r")
            if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
                raise ValueError(f"found {array.dtype} {list(array.shape)}")
            if array.offset + array.nbytes != path.stat().st_size:
                raise ValueError("found further bytes")
        except Exception as error:  # NumPy's parser of headers raises many kinds of errors
            raise ValueError(
                f"{path}: expected {dtype} {list(shape)} ({error}). {REMEDY}"
            ) from error
        return array


class CheckedFile:
    """A file whose blocks are read and compared with their hashes once each.

    Args:
        path: The file.
        digests: The hashes of its blocks, uint8 `[blocks, 16]`; None: there are none, and no byte
            is checked.
        remedy: A sentence that says what to do about a damaged file.
    """

    def __init__(self, path: Path, digests: np.ndarray | None, *, remedy: str) -> None:
        self.path = path
        self._has_hashes = digests is not None
        self._remedy = remedy
        self._digests = np.empty((0, _DIGEST), np.uint8) if digests is None else digests
        self._unread = np.ones(len(self._digests), bool)

    def check(self) -> None:
        """Checks the bytes that were not checked yet.

        Raises:
            ValueError: They differ from the bytes that were written.
        """
        self._check_blocks(np.arange(len(self._digests)))

    def check_bytes(self, starts: np.ndarray, ends: np.ndarray) -> None:
        """Checks the blocks that hold stretches of bytes, int64 `[stretches]`, as `check` does."""
        filled = ends > starts
        if not self._has_hashes or not filled.any():
            return
        first, last = starts[filled] // _BLOCK, (ends[filled] - 1) // _BLOCK
        widest = int((last - first).max()) + 1
        # Stretches are short compared with a block, or there are only a few. So an array with a row
        # of blocks for each stretch is small.
        self._check_blocks(np.unique(np.minimum(first[:, None] + np.arange(widest), last[:, None])))

    def _check_blocks(self, blocks: np.ndarray) -> None:
        """Checks some blocks, int64 `[blocks]`, in their order."""
        blocks = blocks[self._unread[blocks]]
        if not len(blocks):
            return
        with self.path.open("rb") as file:
            for block in blocks.tolist():
                file.seek(block * _BLOCK)
                if _digest(file.read(_BLOCK)) != self._digests[block].tobytes():
                    raise ValueError(
                        f"{self.path}: expected the bytes that were written, found others from "
                        f"byte {block * _BLOCK:,} on: the file is damaged. {self._remedy}"
                    )
                self._unread[block] = False


def write_hashes(target: Path, files: Sequence[Path]) -> dict[str, str]:
    """Writes the hashes of the blocks of files, one after the other.

    Args:
        target: The file to write.
        files: The files, all in one folder.

    Returns:
        A hash of the hashes of each file by the file's name, in hexadecimal digits.
    """
    roots = {}
    with target.open("wb") as hashes:
        for path in files:
            digests = _file_digests(path)
            roots[path.name] = _digest(digests).hex()
            hashes.write(digests)
    return roots


def read_hashes(
    source: Path, sizes: Mapping[str, int], roots: Mapping[str, str], *, remedy: str
) -> dict[str, np.ndarray]:
    """Reads the hashes that `write_hashes` wrote.

    Args:
        source: The file of hashes.
        sizes: The bytes of each file by its name, in the order of the hashes.
        roots: The result of `write_hashes`.
        remedy: A sentence that says what to do about a damaged file.

    Returns:
        The hashes of each file's blocks by the file's name, uint8 `[blocks, 16]`.

    Raises:
        ValueError: They differ from the hashes that were written.
    """
    counts = {name: -(-size // _BLOCK) for name, size in sizes.items()}
    expected = _DIGEST * sum(counts.values())
    if (found := source.stat().st_size) != expected:
        raise ValueError(f"{source}: expected {expected} bytes, found {found}. {remedy}")
    digests = {}
    with source.open("rb") as file:
        for name, count in counts.items():
            content = file.read(_DIGEST * count)
            if _digest(content).hex() != roots.get(name):
                raise ValueError(
                    f"{source}: expected the hashes of {name} that were written, found others: the "
                    f"file is damaged. {remedy}"
                )
            digests[name] = np.frombuffer(content, np.uint8).reshape(-1, _DIGEST)
    return digests


def text_hash(text: str) -> str:
    """A hash of a text, in hexadecimal digits."""
    return _digest(text.encode("utf-8", "surrogatepass")).hex()


def _file_digests(path: Path) -> bytes:
    digests = bytearray()
    with path.open("rb") as file:
        while content := file.read(_BLOCK):
            digests += _digest(content)
    return bytes(digests)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:_DIGEST]
