"""Small indexes, their answers, and indexes as use_st5 0.2 wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from use_st5.search.vector_index import VectorIndex

TEXTS = [f"text {number}, naïve" for number in range(12)]


class Drawn:
    """An encoder of the texts above, whose vectors are drawn once."""

    name, identity = "drawn", "0" * 64

    def __init__(self) -> None:
        self.vectors = np.random.default_rng(0).standard_normal((len(TEXTS), 8)).astype("f")

    def encode(self, texts: list[str]) -> np.ndarray:
        """float32 `[texts, 8]`."""
        return self.vectors[[TEXTS.index(text) for text in texts]]


def write_index(folder: Path, kind: str, *, hashes: bool = True) -> None:
    """Writes an index of `TEXTS`; without hashes as use_st5 0.2 did.

    Args:
        folder: The folder of the index.
        kind: "int8" and "binary" are kinds of use_st5 0.2, which never had hashes.
        hashes: Whether the index has hashes.
    """
    encoder, old = Drawn(), kind in ("int8", "binary")
    built = "exact" if old else kind
    VectorIndex.build(folder, encoder.vectors, encoder=encoder, texts=TEXTS, kind=built)
    if old or not hashes:
        (folder / "hashes.bin").unlink()
        path = folder / "index.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        del record["hashes"], record["files"]["hashes.bin"]
        if old:
            np.save(folder / "codes.npy", np.zeros((len(TEXTS), 8), np.int8))
            record["kind"] = kind
            record["files"]["codes.npy"] = (folder / "codes.npy").stat().st_size
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def answer(folder: Path) -> list[object]:
    """The facts of an index, its answers to a search, and all its texts."""
    index = VectorIndex(folder)
    about = [index.kind, index.model, index.model_hash, index.dimension, len(index)]
    scores, rows = index.search_vectors(Drawn().vectors[:4], k=3)
    return [*about, scores.tolist(), rows.tolist(), [index.text(row) for row in range(len(index))]]
