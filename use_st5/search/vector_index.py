"""An index: vectors of one model in a folder, for exact search or for search with FAISS.

A graph (the kind "hnsw") is Malkov and Yashunin's, "Efficient and robust approximate nearest
neighbor search using Hierarchical Navigable Small World graphs" (arXiv 1603.09320).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from use_st5._imports import require
from use_st5.encode.sentences import one_or_many
from use_st5.encode.similarity import cosine, unit_rows
from use_st5.hub.model_manifest import FileEntry, SimilarityName, short_hash
from use_st5.io.files import atomic_path, file_sha256, sole_writer
from use_st5.io.records import InnerPath, Positive, read_record
from use_st5.search.exact import exact_search, rescored

Kind = Literal["exact", "hnsw"]

_FORMAT = 2
_RECORD, _VECTORS, _GRAPH = "index.json", "vectors.npy", "graph.faiss"
_TEXTS, _STARTS = "texts.utf8", "starts.npy"
_REMEDY = "Make the index again with `use-st5 index … --overwrite` or VectorIndex.build."
# The number of rows that are written together.
_ROWS = 16_384

# Neighbours of a node, and the number of nodes that are examined to find them. Doubling the second
# number changed no recall that was measured.
_NEIGHBOURS, _EFFORT = 32, 40
# The number of rows from which the ranges of a graph's numbers are learnt.
_SAMPLE = 20_000
# The graph gives this many times k rows, which are then scored with the vectors. Measured with
# k = 10 among 100,000 lines of novels by use_dan_en: recall 0.967.
_BREADTH = 16

# The number of texts that are encoded again to check that the vectors are theirs, and the least
# cosine that confirms it.
_PROBES, _SAME = 16, 0.999


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Record:
    """The record of an index, `index.json`, which is written last.

    `files` has the `bytes` and the `sha256` of each file.
    """

    kind: Kind
    model: str
    model_hash: str
    dimension: Positive
    rows: Positive
    similarity: SimilarityName = "cosine"
    files: dict[InnerPath, FileEntry] = dataclasses.field(default_factory=dict)
    format: int = _FORMAT


class VectorIndex:
    """Vectors of texts in a folder, all from one model.

    The index stores the name and hash of its model, and refuses other models. The files are memory
    maps: a search needs memory for a few blocks, apart from the system's file cache. For the kind
    "hnsw", the graph is in memory.

    The index stores the hash of each file. That of a graph is compared when the index is opened;
    `verify` compares all.

    Args:
        folder: A folder that `build` wrote.

    Attributes:
        folder: The same.
        kind: "exact", or "hnsw", a graph (extra `search`) whose results are scored again with the
            vectors.
        model: The name of the model.
        model_hash: The `identity` of the model.
        dimension: The dimension of the vectors.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not (self.folder / _RECORD).is_file():
            raise FileNotFoundError(f"{folder}: expected an index, found no {_RECORD}.")
        self._record = record = read_record(
            self.folder / _RECORD, _Record, remedy=_REMEDY, version=_FORMAT
        )
        self.kind: Kind = record.kind
        self.model, self.model_hash = record.model, record.model_hash
        self.dimension = record.dimension
        self._vectors = self._mapped(_VECTORS, (record.rows, record.dimension), "float32")
        self._graph: Any = None
        if record.kind == "hnsw":
            faiss = require("faiss", "search")
            self.verify(_GRAPH)  # FAISS trusts the numbers in its file.
            self._graph = faiss.read_index(str(self.folder / _GRAPH))
        self._starts = None
        if _TEXTS in record.files:
            self._starts = self._mapped(_STARTS, (record.rows + 1,), "int64")

    @classmethod
    def build(
        cls,
        folder: str | os.PathLike[str],
        vectors: np.ndarray,
        *,
        encoder: Any,
        texts: Sequence[str] | None = None,
        kind: Kind = "exact",
    ) -> VectorIndex:
        """Writes an index to a folder; an existing index there is replaced in one step.

        Args:
            folder: The folder to write.
            vectors: `[rows, dim]`, preferably from `encode_document`; they are read in blocks, so
                they may be a memory map. They are scaled to length 1, unless the model's
                `similarity_fn_name` is "dot".
            encoder: The model that computed the vectors: an object with `encode`, `name`, and
                `identity`, a hash of its files.
            texts: The texts of the vectors. They are stored, and some are encoded again to check
                that the vectors belong to them. None: the origin of the vectors is not checked.
            kind: "exact" or "hnsw".
        """
        if kind not in ("exact", "hnsw"):
            raise ValueError(f"kind: expected exact or hnsw, received {kind}.")
        if kind == "hnsw":
            require("faiss", "search")
        vectors = np.asarray(vectors)
        if len(vectors.shape) != 2 or 0 in vectors.shape:
            raise ValueError(f"vectors: expected [rows, dim], received {list(vectors.shape)}.")
        if texts is not None and not _are_vectors_of(texts, vectors, encoder):
            expected = f"expected the vectors of {encoder.name} for these texts, in the same order"
            raise ValueError(f"vectors: {expected} and with the same prompt.")
        target = Path(folder)
        is_dot = getattr(encoder, "similarity_fn_name", None) == "dot"
        with sole_writer(target):
            check_replaceable(target)
            with atomic_path(target) as temporary:
                temporary.mkdir()
                written = _write_vectors(temporary / _VECTORS, vectors, to_unit_length=not is_dot)
                if kind == "hnsw":
                    _write_graph(temporary / _GRAPH, written)
                if texts is not None:
                    _write_texts(temporary, texts)
                files = {
                    InnerPath(path.name): FileEntry(
                        bytes=path.stat().st_size, sha256=file_sha256(path)
                    )
                    for path in sorted(temporary.iterdir())
                }
                record = _Record(
                    kind=kind,
                    model=encoder.name,
                    model_hash=encoder.identity,
                    dimension=vectors.shape[1],
                    rows=vectors.shape[0],
                    similarity="dot" if is_dot else "cosine",
                    files=files,
                )
                text = json.dumps(dataclasses.asdict(record), indent=1)
                (temporary / _RECORD).write_text(text + "\n", encoding="utf-8")
        return cls(target)

    def __len__(self) -> int:
        """Number of vectors."""
        return self._record.rows

    @property
    def has_texts(self) -> bool:
        """Whether the index stores the texts."""
        return self._starts is not None

    def text(self, row: int) -> str:
        """The text of a row, if the index was built with texts."""
        if self._starts is None:
            raise ValueError(f"{self.folder}: expected an index with texts, found one without.")
        start, end = self._starts[row : row + 2].tolist()
        with (self.folder / _TEXTS).open("rb") as stream:
            stream.seek(start)
            return stream.read(end - start).decode("utf-8", "surrogatepass")

    def verify(self, *names: str) -> None:
        """Compares files, or all, with their hashes; a ValueError names a damaged one."""
        for name in names or self._record.files:
            path, entry = self.folder / name, self._record.files.get(InnerPath(name))
            if not (entry and path.is_file() and file_sha256(path) == entry["sha256"]):
                raise ValueError(f"{path}: expected the bytes that were written. {_REMEDY}")

    def search(
        self, encoder: Any, texts: Iterable[str], *, k: int = 10, breadth: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the rows nearest to texts; see `search_vectors`.

        The texts get the model's prompt for queries, if it has one (`encode_query`). An encoder
        that is not the model of the index is a ValueError.
        """
        if encoder.identity != self.model_hash:
            own = f"{self.model} with the hash {short_hash(self.model_hash)}"
            other = f"{encoder.name} with {short_hash(encoder.identity)}"
            raise ValueError(f"{self.folder}: expected its model, {own}, received {other}.")
        encode = getattr(encoder, "encode_query", encoder.encode)
        return self.search_vectors(encode(one_or_many(texts)[0]), k=k, breadth=breadth)

    def search_vectors(
        self, queries: np.ndarray, *, k: int = 10, breadth: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the rows with the largest cosines, or dot products if the model uses these.

        Args:
            queries: `[queries, dim]`, finite. They must come from the model of the index, which
                this method cannot check.
            k: Number of rows to find for each query; all, if there are fewer.
            breadth: Only for the kind "hnsw": the graph returns `breadth · k` rows, which are then
                scored with the vectors. A larger number finds more of the true neighbours. None:
                16.

        Returns:
            Cosines or dot products, float32 `[queries, k]`, the largest first, and rows, int64
            `[queries, k]`. For equal ones, the lower row comes first. If a graph finds fewer rows,
            the rest is −inf and −1.
        """
        breadth = _BREADTH if breadth is None else breadth
        if k < 1 or breadth < 1:
            raise ValueError(f"Expected k and breadth from 1, received {k} and {breadth}.")
        queries, k = np.asarray(queries), min(k, len(self))
        if queries.shape[1:] != (self.dimension,) or not np.isfinite(queries).all():
            shape = f"[queries, {self.dimension}] as {self.model} gives"
            raise ValueError(f"queries: expected finite {shape}, received {[*queries.shape]}.")
        if self._record.similarity == "cosine":
            queries = unit_rows(queries)
        queries = np.ascontiguousarray(queries, np.float32)
        if self._graph is None:
            return exact_search(queries, self._vectors, k=k)
        count = min(k * breadth, len(self))
        effort = require("faiss", "search").SearchParametersHNSW(efSearch=count)
        candidates = self._graph.search(queries, count, params=effort)[1]
        return rescored(queries, self._vectors, candidates, k=k)

    def _mapped(self, name: str, shape: tuple[int, ...], dtype: str) -> np.memmap:
        """Maps the array of a file, which is not read until it is needed."""
        path, problem = self.folder / name, ""
        try:
            array = np.load(path, mmap_mode="r")
        except Exception as error:  # NumPy's parser of headers raises many kinds of errors
            array, problem = np.empty(0), str(error)
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            found = problem or f"{array.dtype} {list(array.shape)}"
            raise ValueError(f"{path}: expected {dtype} {list(shape)}, found {found}. {_REMEDY}")
        return array


def check_replaceable(folder: Path) -> None:
    """Checks that a new index in a folder replaces nothing but an older index."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"a file"}
    if _RECORD not in names or names - {_RECORD, _VECTORS, _GRAPH, _TEXTS, _STARTS}:
        raise FileExistsError(f"Expected {folder} to contain only an index of use_st5.")


def _write_vectors(path: Path, vectors: np.ndarray, *, to_unit_length: bool) -> np.ndarray:
    written = np.lib.format.open_memmap(path, "w+", np.float32, vectors.shape)
    for start in range(0, len(vectors), _ROWS):
        block = np.asarray(vectors[start : start + _ROWS])
        if not np.isfinite(block).all():
            raise ValueError(f"vectors: expected finite numbers from row {start}.")
        written[start : start + _ROWS] = unit_rows(block) if to_unit_length else block
    return written


def _write_graph(path: Path, vectors: np.ndarray) -> None:
    """Builds and writes a graph: one byte of memory per number and about 270 bytes per row."""
    faiss = require("faiss", "search")
    graph = faiss.IndexHNSWSQ(
        vectors.shape[1], faiss.ScalarQuantizer.QT_8bit, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT
    )
    graph.hnsw.efConstruction = _EFFORT
    sample = np.linspace(0, len(vectors) - 1, min(len(vectors), _SAMPLE)).astype(np.int64)
    graph.train(np.ascontiguousarray(vectors[sample]))
    for start in range(0, len(vectors), _ROWS):
        graph.add(np.ascontiguousarray(vectors[start : start + _ROWS]))
    faiss.write_index(graph, str(path))


def _write_texts(folder: Path, texts: Sequence[str]) -> None:
    """Writes texts, one after the other, and the positions at which they begin."""
    starts = np.zeros(len(texts) + 1, np.int64)
    with (folder / _TEXTS).open("wb") as file:
        for row, text in enumerate(texts):
            starts[row + 1] = starts[row] + file.write(text.encode("utf-8", "surrogatepass"))
    np.save(folder / _STARTS, starts)


def _are_vectors_of(texts: Sequence[str], vectors: np.ndarray, encoder: Any) -> bool:
    """Whether vectors belong to texts, of which some are encoded again."""
    rows = vectors.shape[0]
    if len(texts) != rows:
        return False
    places = np.unique(np.linspace(0, rows - 1, min(rows, _PROBES)).astype(int)).tolist()
    given, probes = vectors[places], [texts[place] for place in places]
    # The vectors should have the prompt for documents, but may also have none.
    for encode in (getattr(encoder, "encode_document", encoder.encode), encoder.encode):
        own = np.asarray(encode(probes))
        if own.shape == given.shape:
            # A zero vector has no direction, and a cosine of 0 with every other.
            zero = ~own.any(axis=1) & ~given.any(axis=1)
            if np.all((cosine(own, given) >= _SAME) | zero):
                return True
    return False
