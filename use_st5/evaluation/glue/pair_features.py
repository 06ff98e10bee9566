"""Features of pairs of embeddings, made when a classifier asks for their rows."""

from __future__ import annotations

import numpy as np


class PairFeatures:
    """(u, v, |u − v|, u·v) of matching rows (· element by element), as of a float32 array.

    InferSent's features (Conneau et al. 2017, section 3.1), which SentEval and its extension to
    GLUE take for pairs. MNLI's 393 thousand pairs would fill gigabytes: rows are made when they are
    asked for, and only `u` and `v` are kept.

    Args:
        u: Embeddings `[pairs, dim]` of the first sentences.
        v: Those of the second ones.

    Attributes:
        shape: `(pairs, 4·dim)`.

    Raises:
        ValueError: The shapes differ.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, u: np.ndarray, v: np.ndarray) -> None:
        if u.shape != v.shape or u.ndim != 2:
            raise ValueError(
                f"Expected two arrays of one shape [pairs, dim], received {u.shape} and {v.shape}."
            )
        self._u = np.asarray(u, self.dtype)
        self._v = np.asarray(v, self.dtype)
        self.shape = (len(u), 4 * u.shape[1])

    def __len__(self) -> int:
        """Number of pairs."""
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        """The features `[rows, 4·dim]` of the pairs that a slice or an array of numbers selects."""
        u, v = self._u[rows], self._v[rows]
        return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)
