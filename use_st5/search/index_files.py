"""The folder of a saved index: what is written to it, and how it is read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from use_st5._records import Count, InnerPath, Positive, read_record
from use_st5._vectors import unit_rows
from use_st5.search.approximate import NearGraph
from use_st5.search.exact import Rows
from use_st5.search.quantized import BinaryRows, Int8Rows

Kind = Literal["exact", "int8", "binary", "hnsw"]

_FORMAT = 1
_RECORD, _VECTORS, _CODES, _SCALES = "index.json", "vectors.npy", "codes.npy", "scales.npy"
_GRAPH, _TEXTS, _STARTS = "graph.faiss", "texts.utf8", "starts.npy"
_REMEDY = "Build the index again."
_BLOCK = 16_384


@dataclass(frozen=True, kw_only=True)
class IndexRecord:
    """What an index says about itself, in `index.json`, which is written last.

    Attributes:
        kind: How it is searched.
        model: Name of the model that made the vectors.
        model_hash: Its `identity`.
        dimension: Numbers in a vector.
        rows: Number of vectors.
        files: The bytes of each file.
        format: Version of the layout.
    """

    kind: Kind
    model: str
    model_hash: str
    dimension: Positive
    rows: Positive
    files: dict[InnerPath, Count] = dataclasses.field(default_factory=dict)
    format: int = _FORMAT

    def write(self, folder: Path) -> None:
        """Writes the record, with the sizes of the files that are there."""
        files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        text = json.dumps({**dataclasses.asdict(self), "files": files}, indent=1)
        (folder / _RECORD).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> IndexRecord:
        """Reads the record of a folder, and holds the files against their sizes.

        Raises:
            FileNotFoundError: The folder holds no index.
            ValueError: The record is damaged, or a file is missing or of another size.
        """
        if not (folder / _RECORD).is_file():
            raise FileNotFoundError(
                f"Expected an index in {folder}, found no {_RECORD} there. `use-st5 index` and "
                "VectorIndex.build write one."
            )
        record = read_record(folder / _RECORD, cls, remedy=_REMEDY, version=_FORMAT)
        for name, size in record.files.items():
            path = folder / name
            found = path.stat().st_size if path.is_file() else "no such file"
            if found != size:
                raise ValueError(f"{path}: expected {size} bytes, found {found}. {_REMEDY}")
        return record


def check_replaceable(folder: Path) -> None:
    """Checks that writing an index to a folder removes an older index at most.

    Raises:
        FileExistsError: The folder holds anything else, or it is a file.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"a file"}
    ours = {_RECORD, _VECTORS, _CODES, _SCALES, _GRAPH, _TEXTS, _STARTS}
    if _RECORD not in names or names - ours:
        raise FileExistsError(
            f"Expected {folder} to hold an index that use_st5 wrote, and nothing else, or to be "
            "empty: it would be replaced. Move that away, or choose another folder."
        )


def write_vectors(folder: Path, vectors: np.ndarray | Rows, kind: Kind) -> None:
    """Writes vectors, scaled to length 1, and what is looked through before them.

    Raises:
        ValueError: They are not finite.
    """
    rows, dimension = vectors.shape
    create = np.lib.format.open_memmap
    kept = create(folder / _VECTORS, "w+", np.float32, (rows, dimension))
    if kind == "int8":
        codes = create(folder / _CODES, "w+", np.int8, (rows, dimension))
        scales = create(folder / _SCALES, "w+", np.float32, (rows,))
    elif kind == "binary":
        codes = create(folder / _CODES, "w+", np.uint8, (rows, -(-dimension // 8)))
    for start in range(0, rows, _BLOCK):
        part = slice(start, min(start + _BLOCK, rows))
        some = np.asarray(vectors[part])
        if not np.isfinite(some).all():
            raise ValueError(
                "vectors: expected finite numbers, received NaN or infinity in rows "
                f"{part.start} to {part.stop - 1}."
            )
        kept[part] = unit_rows(some)
        if kind == "int8":
            codes[part], scales[part] = Int8Rows.encoded(kept[part])
        elif kind == "binary":
            codes[part] = BinaryRows.encoded(kept[part])
    if kind == "hnsw":
        NearGraph.of(kept).write(folder / _GRAPH)


def kept_vectors(folder: Path, record: IndexRecord) -> np.ndarray:
    """The vectors, float32 `[rows, dim]`, mapped."""
    return _mapped(folder, _VECTORS, (record.rows, record.dimension), "float32")


def first_look(folder: Path, record: IndexRecord) -> Int8Rows | BinaryRows | NearGraph | None:
    """What is looked through before the vectors are; None: nothing.

    Raises:
        ValueError: It does not fit the record.
        ImportError: It is a graph, and FAISS is not installed.
    """
    rows, dimension = record.rows, record.dimension
    if record.kind == "int8":
        codes = _mapped(folder, _CODES, (rows, dimension), "int8")
        return Int8Rows(codes, _mapped(folder, _SCALES, (rows,), "float32"))
    if record.kind == "binary":
        return BinaryRows(_mapped(folder, _CODES, (rows, -(-dimension // 8)), "uint8"), dimension)
    if record.kind != "hnsw":
        return None
    graph = NearGraph.read(folder / _GRAPH)
    if graph.shape != (rows, dimension):
        raise ValueError(f"{folder / _GRAPH}: expected {rows} rows of {dimension}. {_REMEDY}")
    return graph


class KeptTexts:
    """The texts of an index, of which one at a time is read.

    Args:
        folder: The index.
        record: What it says about itself.
    """

    def __init__(self, folder: Path, record: IndexRecord) -> None:
        self._path = folder / _TEXTS
        self._starts = _mapped(folder, _STARTS, (record.rows + 1,), "int64")

    @classmethod
    def of(cls, folder: Path, record: IndexRecord) -> KeptTexts | None:
        """Those of a folder; None where it has none."""
        return cls(folder, record) if _TEXTS in record.files else None

    @staticmethod
    def write(folder: Path, texts: Sequence[str]) -> None:
        """Writes texts, one after the other, and where each begins."""
        starts = np.zeros(len(texts) + 1, np.int64)
        with (folder / _TEXTS).open("wb") as file:
            for row, text in enumerate(texts):
                starts[row + 1] = starts[row] + file.write(text.encode("utf-8", "surrogatepass"))
        np.save(folder / _STARTS, starts)

    def __getitem__(self, row: int) -> str:
        """The text of a row."""
        start, end = self._starts[row : row + 2].tolist()
        with self._path.open("rb") as file:
            file.seek(start)
            return file.read(end - start).decode("utf-8", "surrogatepass")


def _mapped(folder: Path, name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of a file, which is not read until it is needed."""
    try:
        array = np.load(folder / name, mmap_mode="r")
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"found {array.dtype} {list(array.shape)}")
    except Exception as error:  # NumPy's parser of headers raises what it stumbles over
        raise ValueError(
            f"{folder / name}: expected {dtype} {list(shape)} ({error}). {_REMEDY}"
        ) from error
    return array
