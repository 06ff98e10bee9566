"""The vectors of a corpus, read again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from pyarrow import parquet

REPORT = "embeddings.json"


def read_vectors(folder: str | os.PathLike[str]) -> tuple[list[str], list[str], np.ndarray]:
    """What `embed_corpus` has written into a folder of this machine.

    Args:
        folder: It holds `embeddings.json`, without which it is not whole.

    Returns:
        Ids, texts, and vectors float32 `[rows, dimension]`, rows in the same order, which is that
        of the files.

    Raises:
        FileNotFoundError: The folder holds no vectors, or not all of them.
        ValueError: The files are of several models.

    Example:
        >>> ids, texts, vectors = read_vectors("vectors")
        >>> faiss_index.add(vectors)
    """
    place = Path(folder)
    if not (place / REPORT).is_file():
        raise FileNotFoundError(
            f"Expected {REPORT} in {place}, which is written when all vectors are there, found "
            "none. Embed the corpus again."
        )
    files = [parquet.ParquetFile(path) for path in sorted(place.glob("vectors-*-of-*.parquet"))]
    models = {file.schema_arrow.metadata[b"model_hash"] for file in files}
    if len(models) > 1:
        raise ValueError(f"{place}: expected vectors of one model, found those of {len(models)}.")
    ids: list[str] = []
    texts: list[str] = []
    vectors: np.ndarray | None = None
    total = sum(file.metadata.num_rows for file in files)
    for batch in (each for file in files for each in file.iter_batches()):
        numbers = batch.column("embedding").flatten().to_numpy().reshape(len(batch), -1)
        if vectors is None:
            vectors = np.empty((total, numbers.shape[1]), np.float32)
        vectors[len(ids) : len(ids) + len(batch)] = numbers
        ids += batch.column("id").to_pylist()
        texts += batch.column("text").to_pylist()
    for file in files:
        file.close()
    return ids, texts, np.empty((0, 0), np.float32) if vectors is None else vectors
