"""The folder of a saved index: its files, and their checks before they are used."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from use_st5.encode.similarity import unit_rows
from use_st5.hub.model_manifest import FileEntry, SimilarityName
from use_st5.io.files import file_sha256
from use_st5.io.records import InnerPath, Positive, read_record
from use_st5.search.hnsw import NearGraph

Kind = Literal["exact", "hnsw"]

_FORMAT = 2
_RECORD, VECTORS, GRAPH = "index.json", "vectors.npy", "graph.faiss"
TEXTS, STARTS = "texts.utf8", "starts.npy"
REMEDY = "Make the index again with `use-st5 index … --overwrite` or VectorIndex.build."
# The number of rows that are written together.
_ROWS = 16_384


@dataclass(frozen=True, kw_only=True)
class IndexRecord:
    """The record of an index, `index.json`, which is written last.

    Attributes:
        kind: "hnsw" has a graph; "exact" has none.
        model: Name of the model that made the vectors.
        model_hash: The `identity` of the model.
        dimension: Numbers in a vector.
        rows: Number of vectors.
        similarity: What a search compares: cosines of rows that are scaled to length 1, or dot
            products of the rows as they are.
        files: The `bytes` and the `sha256` of each file.
        format: Version of the layout.
    """

    kind: Kind
    model: str
    model_hash: str
    dimension: Positive
    rows: Positive
    similarity: SimilarityName = "cosine"
    files: dict[InnerPath, FileEntry] = dataclasses.field(default_factory=dict)
    format: int = _FORMAT

    def write(self, folder: Path) -> None:
        """Writes the record, with the sizes and the hashes of the files that are there."""
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
            for path in sorted(folder.iterdir())
        }
        text = json.dumps({**dataclasses.asdict(self), "files": files}, indent=1)
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
        texts = (TEXTS, STARTS) if {TEXTS, STARTS} & {*record.files} else ()
        needed_names = {VECTORS, *((GRAPH,) if record.kind == "hnsw" else ()), *texts}
        if missing := sorted(needed_names - {*record.files}):
            raise ValueError(
                f"{path}: $.files: expected {', '.join(missing)}, found none of this name. {REMEDY}"
            )
        for name, entry in record.files.items():
            file = folder / name
            size = file.stat().st_size if file.is_file() else "no such file"
            if size != entry["bytes"]:
                raise ValueError(f"{file}: expected {entry['bytes']} bytes, found {size}. {REMEDY}")
        return record


def check_replaceable(folder: Path) -> None:
    """Checks that a new index in a folder replaces nothing but an older index.

    Raises:
        FileExistsError: The folder holds anything else, or it is a file.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"a file"}
    if _RECORD not in names or names - {_RECORD, VECTORS, GRAPH, TEXTS, STARTS}:
        raise FileExistsError(
            f"Expected {folder} to be empty or to contain only an index of use_st5, because it "
            "would be replaced. Move the other files away, or choose another folder."
        )


def write_vectors(
    folder: Path, vectors: np.ndarray, kind: Kind, similarity: SimilarityName = "cosine"
) -> None:
    """Writes vectors, for cosines scaled to length 1, and the graph of the kind "hnsw".

    Raises:
        ValueError: They are not finite.
    """
    rows, dimension = vectors.shape
    written = np.lib.format.open_memmap(folder / VECTORS, "w+", np.float32, (rows, dimension))
    for start in range(0, rows, _ROWS):
        part = slice(start, min(start + _ROWS, rows))
        block = np.asarray(vectors[part])
        if not np.isfinite(block).all():
            raise ValueError(
                "vectors: expected finite numbers, received NaN or infinity in rows "
                f"{part.start} to {part.stop - 1}."
            )
        written[part] = block if similarity == "dot" else unit_rows(block)
    if kind == "hnsw":
        NearGraph.of(written).write(folder / GRAPH)


def write_texts(folder: Path, texts: Sequence[str]) -> None:
    """Writes texts, one after the other, and the positions at which they begin."""
    starts = np.zeros(len(texts) + 1, np.int64)
    with (folder / TEXTS).open("wb") as file:
        for row, text in enumerate(texts):
            starts[row + 1] = starts[row] + file.write(text.encode("utf-8", "surrogatepass"))
    np.save(folder / STARTS, starts)


class OpenIndex:
    """The files of an index.

    A file that is read whole (graph, beginnings of the texts) is compared with its hash first. The
    vectors and the texts are mapped; `check` compares them, too.

    Args:
        folder: The index.

    Attributes:
        record: The record of the index.
        vectors: All vectors, float32 `[rows, dim]`, mapped.
        graph: The graph of an index of the kind "hnsw"; None for other kinds.

    Raises:
        FileNotFoundError: The folder holds no index.
        ValueError: The record, or a file that is read at once, is damaged.
        ImportError: The index has a graph, and FAISS is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.record = record = IndexRecord.read(folder)
        self.vectors = self._mapped(VECTORS, (record.rows, record.dimension), "float32")
        self.graph = None
        if record.kind == "hnsw":
            # FAISS trusts the numbers in its file.
            self._check_hash(GRAPH)
            self.graph = NearGraph.read(folder / GRAPH)
        self._starts = None
        if TEXTS in record.files:
            self._check_hash(STARTS)
            self._starts = self._mapped(STARTS, (record.rows + 1,), "int64")

    @property
    def has_texts(self) -> bool:
        """Whether the index stores the texts."""
        return self._starts is not None

    def check(self) -> None:
        """Reads all files and compares them with their hashes.

        Raises:
            ValueError: A file is damaged.
        """
        for name in self.record.files:
            self._check_hash(name)

    def text(self, row: int) -> str:
        """The text of a row of an index that has texts.

        Raises:
            ValueError: Its bytes are damaged.
        """
        assert self._starts is not None
        path = self._folder / TEXTS
        start, end = self._starts[row : row + 2].tolist()
        with path.open("rb") as stream:
            stream.seek(start)
            content = stream.read(end - start)
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}: expected UTF-8 in bytes {start} to {end}, found others. {REMEDY}"
            ) from error

    def _check_hash(self, name: str) -> None:
        path = self._folder / name
        if file_sha256(path) != self.record.files[InnerPath(name)]["sha256"]:
            raise ValueError(
                f"{path}: expected the bytes that were written, found others: the file is damaged. "
                f"{REMEDY}"
            )

    def _mapped(self, name: str, shape: tuple[int, ...], dtype: str) -> np.memmap:
        """Maps the array of a file, which is not read until it is needed."""
        path = self._folder / name
        try:
            array = np.load(path, mmap_mode="r")
        except Exception as error:  # NumPy's parser of headers raises many kinds of errors
            raise ValueError(
                f"{path}: expected {dtype} {list(shape)} ({error}). {REMEDY}"
            ) from error
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise ValueError(
                f"{path}: expected {dtype} {list(shape)}, found {array.dtype} "
                f"{list(array.shape)}. {REMEDY}"
            )
        return array
