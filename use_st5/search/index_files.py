"""The folder of a saved index: what is written to it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from use_st5._records import Count, InnerPath, Positive, read_record
from use_st5._vectors import unit_rows
from use_st5.search.approximate import NearGraph
from use_st5.search.checked_files import text_hash, write_hashes
from use_st5.search.exact import Rows
from use_st5.search.quantized import BinaryRows, Int8Rows

Kind = Literal["exact", "int8", "binary", "hnsw"]

_FORMAT = 1
_RECORD, VECTORS, CODES, SCALES = "index.json", "vectors.npy", "codes.npy", "scales.npy"
GRAPH, TEXTS, STARTS, HASHES = "graph.faiss", "texts.utf8", "starts.npy", "hashes.bin"
REMEDY = "Make the index again with `use-st5 index … --overwrite` or VectorIndex.build."
_BLOCK = 16_384
FIRST_LOOK: dict[Kind, tuple[str, ...]] = {
    "exact": (),
    "int8": (CODES, SCALES),
    "binary": (CODES,),
    "hnsw": (GRAPH,),
}


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
        hashes: A hash of each file, and of the record itself; an index of use_st5 0.2 has none.
        format: Version of the layout.
    """

    kind: Kind
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
        """Reads the record of a folder, and holds the files against their sizes.

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
        hashed = bool(record.hashes) or HASHES in record.files
        if hashed and record.hashes.get(_RECORD) != record._own_hash():
            raise ValueError(
                f"{path}: expected the record that was written, found another: the file is "
                f"damaged. {REMEDY}"
            )
        texts = (TEXTS, STARTS) if {TEXTS, STARTS} & {*record.files} else ()
        needed = {VECTORS, *FIRST_LOOK[record.kind], *texts}
        if missing := sorted(needed - {*record.files}):
            raise ValueError(
                f"{path}: $.files: expected {', '.join(missing)}, found none of this name. {REMEDY}"
            )
        for name, size in record.files.items():
            file = folder / name
            found = file.stat().st_size if file.is_file() else "no such file"
            if found != size:
                raise ValueError(f"{file}: expected {size} bytes, found {found}. {REMEDY}")
        return record

    def _own_hash(self) -> str:
        content: dict[str, Any] = dataclasses.asdict(self)
        content["hashes"] = {name: each for name, each in self.hashes.items() if name != _RECORD}
        return text_hash(json.dumps(content, sort_keys=True))


def check_replaceable(folder: Path) -> None:
    """Checks that writing an index to a folder removes an older index at most.

    Raises:
        FileExistsError: The folder holds anything else, or it is a file.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {"a file"}
    ours = {_RECORD, VECTORS, CODES, SCALES, GRAPH, TEXTS, STARTS, HASHES}
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
    kept = create(folder / VECTORS, "w+", np.float32, (rows, dimension))
    if kind == "int8":
        codes = create(folder / CODES, "w+", np.int8, (rows, dimension))
        scales = create(folder / SCALES, "w+", np.float32, (rows,))
    elif kind == "binary":
        codes = create(folder / CODES, "w+", np.uint8, (rows, -(-dimension // 8)))
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
        NearGraph.of(kept).write(folder / GRAPH)


def write_texts(folder: Path, texts: Sequence[str]) -> None:
    """Writes texts, one after the other, and where each begins."""
    starts = np.zeros(len(texts) + 1, np.int64)
    with (folder / TEXTS).open("wb") as file:
        for row, text in enumerate(texts):
            starts[row + 1] = starts[row] + file.write(text.encode("utf-8", "surrogatepass"))
    np.save(folder / STARTS, starts)
