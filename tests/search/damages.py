"""Small indexes and their answers."""

from __future__ import annotations

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


def write_index(folder: Path, kind: str) -> None:
    """Writes an index of `TEXTS`."""
    encoder = Drawn()
    VectorIndex.build(
        folder,
        encoder.vectors,
        encoder=encoder,
        texts=TEXTS,
        fields={"id": [*range(12)]},
        kind=kind,
    )


def answer(folder: Path) -> list[object]:
    """The facts of an index, its answers to a search, and all its texts."""
    index = VectorIndex(folder)
    about = [index.kind, index.model, index.model_hash, index.dimension, len(index)]
    scores, rows = index.search_vectors(Drawn().vectors[:4], k=3)
    return [*about, scores.tolist(), rows.tolist(), [*index.texts()], index.fields]
