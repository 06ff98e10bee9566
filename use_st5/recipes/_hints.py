"""What a layer in the middle of the teacher says of sentences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from use_st5.vector_store import VectorStore


class Hints:
    """The layer's vectors, less what all of them share.

    That is most of each in BERT's layers, and nothing to be learned.

    Args:
        vectors: The layer's.
        sample: Sentences whose mean is what all share.
    """

    def __init__(self, vectors: VectorStore, sample: Iterable[str]) -> None:
        self._vectors = vectors
        self._mean = np.mean([vectors[each] for each in sample], axis=0, dtype=np.float32)

    def __getitem__(self, sentence: str) -> np.ndarray:
        """The sentence's hint, float32 `[dim]`."""
        return self._vectors[sentence] - self._mean
