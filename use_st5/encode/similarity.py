"""Directions of embeddings and the metrics between them, in NumPy.

They are computed in float64: in float32 some pairs become ties, and others get a random order.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from use_st5.encode.sentences import check_choice
from use_st5.hub.model_manifest import SimilarityName

Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
Metric = Literal["cosine", "angular", "dot"]


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Returns the rows of `[n, dim]` scaled to length 1, float64; zero rows stay zero."""
    vectors = np.asarray(vectors, dtype=np.float64)
    # First divide by the largest entry: squares of tiny or huge entries would under- or overflow.
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    vectors = vectors / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def cosine(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Cosines of matching rows of `[n, dim]`, float64 `[n]`; 0 if either row is zero."""
    return np.clip(np.sum(unit_rows(u) * unit_rows(v), axis=1), -1.0, 1.0)


def angular(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """`1 − arccos(cos(u, v)) / π`, Eq. 1 of the USE paper, of matching rows; float64 `[n]`.

    The angle is `2·atan2(|û − v̂|, |û + v̂|)`, which keeps the digits that `arccos` loses near ±1.
    The result is 0.5 if either row is zero.
    """
    u, v = unit_rows(u), unit_rows(v)
    apart, together = np.linalg.norm(u - v, axis=1), np.linalg.norm(u + v, axis=1)
    directionless = apart + together == 0  # two zero rows
    return np.where(directionless, 0.5, 1.0 - 2.0 / np.pi * np.arctan2(apart, together))


def dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Dot products of matching rows, float64 `[n]`."""
    return np.sum(u.astype(np.float64) * v, axis=1)


def pairwise(u: np.ndarray, v: np.ndarray, *, metric: str = "cosine") -> np.ndarray:
    """Similarity of every row of `u` `[n, dim]` with every row of `v` `[m, dim]`.

    Args:
        u: Vectors.
        v: Vectors.
        metric: "cosine", "angular" or "dot".

    Returns:
        float32 `[n, m]`; zero rows give the same values as in `cosine`, `angular` and `dot`.
    """
    similarity_by_name(metric)
    if metric == "dot":
        return (u.astype(np.float64) @ v.T.astype(np.float64)).astype(np.float32)
    cosines = np.clip(unit_rows(u) @ unit_rows(v).T, -1.0, 1.0)
    if metric == "angular":
        cosines = 1.0 - np.arccos(cosines) / np.pi
    return cosines.astype(np.float32)


class TextSimilarity(abc.ABC):
    """The similarities of an encoder's texts."""

    encode: Callable[..., Any]
    similarity_fn_name: SimilarityName = "cosine"

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Dimension of the sentence vectors."""

    def similarity(
        self,
        a: str | Sequence[str] | np.ndarray,
        b: str | Sequence[str] | np.ndarray | None = None,
        *,
        metric: Metric | None = None,
    ) -> np.ndarray:
        """Compares every sentence of `a` with every sentence of `b`.

        Args:
            a: `n` sentences, or their vectors `[n, dimension]` as an array or tensor of any
                library. One string or one vector `[dimension]` counts as `n = 1`.
            b: `m` sentences or vectors; None compares `a` with itself.
            metric: "cosine" in −1 … 1; "angular", `1 − arccos(cosine) / π` in 0 … 1 (Eq. 1 of the
                USE paper); "dot". None: the model's own, `similarity_fn_name`.

        Returns:
            float32 `[n, m]`.
        """
        metric = metric or self.similarity_fn_name
        similarity_by_name(metric)
        left = self._vectors(a, "a")
        right = left if b is None else self._vectors(b, "b")
        if not len(left) or not len(right):
            return np.zeros((len(left), len(right)), np.float32)
        return pairwise(left, right, metric=metric)

    def similarity_pairwise(
        self,
        a: str | Sequence[str] | np.ndarray,
        b: str | Sequence[str] | np.ndarray,
        *,
        metric: Metric | None = None,
    ) -> np.ndarray:
        """Compares each sentence of `a` with the sentence of `b` at the same place.

        Args:
            a: `n` sentences or vectors, as for `similarity`.
            b: `n` sentences or vectors.
            metric: As for `similarity`.

        Returns:
            float32 `[n]`.
        """
        compare = similarity_by_name(metric or self.similarity_fn_name)
        left, right = self._vectors(a, "a"), self._vectors(b, "b")
        if len(left) != len(right):
            raise ValueError(f"Expected as many a as b, received {len(left)} and {len(right)}.")
        return compare(left, right).astype(np.float32)

    def _vectors(self, given: Any, argument: str) -> np.ndarray:
        """Vectors `[n, dimension]` of sentences or vectors."""
        if hasattr(given, "__array__"):  # tensors of all libraries, pandas and Arrow
            given = np.asarray(given)
        if not isinstance(given, np.ndarray) or given.dtype.kind in "OSTU":
            return np.atleast_2d(self.encode(given))
        if given.dtype.kind not in "fiu":
            raise TypeError(f"{argument}: expected sentences or vectors, received {given.dtype}.")
        vectors, received, dim = np.atleast_2d(given), list(given.shape), self.dimension
        if vectors.ndim != 2 or vectors.shape[1] != dim:
            raise ValueError(f"{argument}: expected vectors [n, {dim}], received {received}.")
        with np.errstate(over="ignore"):
            bad_rows = np.flatnonzero(~np.isfinite(vectors.astype(np.float32)).all(axis=1))
        if len(bad_rows):
            first = bad_rows[0]
            raise ValueError(f"{argument}: not finite in {len(bad_rows)} rows, first {first}.")
        return vectors


def similarity_by_name(metric: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Returns the function of the metric with this name."""
    check_choice("metric", metric, tuple(_SIMILARITIES))
    return _SIMILARITIES[metric]


def quantized(vectors: np.ndarray, precision: Precision) -> np.ndarray:
    """Quantizes vectors; gives the same numbers as sentence-transformers' `quantize_embeddings`.

    Args:
        vectors: float32 `[n, dim]`.
        precision: "int8" and "uint8" divide the range that each column has in these vectors into
            256 steps. "binary" (int8) and "ubinary" (uint8) keep which numbers are above 0, eight
            in a byte.

    Returns:
        `[n, dim]`, or `[n, ⌈dim / 8⌉]` of bits.
    """
    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8)
    if len(vectors) == 1:
        raise ValueError(f'precision="{precision}" needs the range of several texts in one call.')
    if not len(vectors):
        return vectors.astype(precision)
    lowest = vectors.min(axis=0)
    steps = (vectors.max(axis=0) - lowest) / 255
    codes = np.floor((vectors - lowest) / np.where(steps == 0, 1, steps))
    codes = np.clip(codes, 0, 255)
    return codes.astype(np.uint8) if precision == "uint8" else (codes - 128).astype(np.int8)


_SIMILARITIES = {"cosine": cosine, "angular": angular, "dot": dot}
