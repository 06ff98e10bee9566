"""Similarity of sentence vectors: cosine, dot product and the angular similarity of the USE paper.

Each function takes vectors of any length and returns float32. `angular` is Eq. 1 of the Universal
Sentence Encoder (arXiv 1803.11175): `1 − arccos(cos(u, v)) / π`, in `[0, 1]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from keras import ops

Tensor = Any

# Squared lengths below this count as zero, because the slope of the square root is infinite at 0.
_TINY = 1e-24


def cosine(u: Tensor, v: Tensor) -> Tensor:
    """Cosine of the angle between matching vectors.

    Args:
        u: Vectors, `[..., dim]`.
        v: Vectors with a shape that broadcasts with `u`.

    Returns:
        float32 `[...]` in `[-1, 1]`; 0 if one of the vectors is zero.
    """
    return ops.clip(ops.sum(_unit(u) * _unit(v), axis=-1), -1.0, 1.0)


def dot(u: Tensor, v: Tensor) -> Tensor:
    """Dot product of matching vectors, `[..., dim]` → float32 `[...]`."""
    return ops.sum(_float32(u) * _float32(v), axis=-1)


def angular(u: Tensor, v: Tensor) -> Tensor:
    """Angular similarity, Eq. 1 of the USE paper: `1 − arccos(cos(u, v)) / π`.

    Near ±1, `arccos` loses half of the digits of float32 and has an infinite slope. So the angle is
    computed as `2·atan2(|û − v̂|, |û + v̂|)`. This is accurate for parallel and opposite vectors,
    and its gradient there is zero.

    Args:
        u: Vectors, `[..., dim]`.
        v: Vectors with a shape that broadcasts with `u`.

    Returns:
        float32 `[...]` in `[0, 1]`: 1 for the same direction, 0 for opposite directions, 0.5 for
        orthogonal vectors and for zero vectors.
    """
    u, v = _unit(u), _unit(v)
    apart, together = _length(u - v), _length(u + v)
    directionless = apart + together == 0.0  # two zero vectors: atan2(0, 0) has no gradient
    apart, together = (ops.where(directionless, 1.0, side) for side in (apart, together))
    return 1.0 - (2.0 / math.pi) * ops.arctan2(apart, together)


def pairwise(u: Tensor, v: Tensor, *, metric: str = "cosine") -> Tensor:
    """Similarity of every row of `u` with every row of `v`.

    Here the angular metric is computed with a clipped `arccos`, because `|û − v̂|` for all pairs
    would need `n·m·dim` numbers. It is computed in float64, so the result for identical vectors is
    1 within 1e-7. Without float64 (the default of JAX), the error is up to 2e-4.

    Args:
        u: Vectors, `[n, dim]`.
        v: Vectors, `[m, dim]`.
        metric: "cosine", "angular" or "dot".

    Returns:
        float32 `[n, m]`.

    Raises:
        ValueError: The metric is unknown.
    """
    similarity_by_name(metric)
    if metric == "dot":
        return ops.matmul(_float32(u), ops.transpose(_float32(v)))
    dtype = "float32" if metric == "cosine" else "float64"
    u, v = _unit(u, dtype=dtype), _unit(v, dtype=dtype)
    cosines = ops.clip(ops.matmul(u, ops.transpose(v)), -1.0, 1.0)
    if metric == "cosine":
        return cosines
    return ops.cast(1.0 - ops.arccos(cosines) / math.pi, "float32")


def similarity_by_name(metric: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns the function that computes `metric` for matching vectors.

    Raises:
        ValueError: The metric is unknown.
    """
    try:
        return _SIMILARITIES[metric]
    except KeyError:
        expected = ", ".join(repr(name) for name in _SIMILARITIES)
        raise ValueError(f"Unknown metric: {metric!r}. Expected one of {expected}.") from None


_SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine,
    "angular": angular,
    "dot": dot,
}


def _float32(x: Tensor) -> Tensor:
    return ops.cast(ops.convert_to_tensor(x), "float32")


def _length(x: Tensor) -> Tensor:
    """Euclidean length, `[..., dim]` → `[...]`; the gradient of a zero vector is zero, not NaN."""
    squared = ops.sum(ops.square(x), axis=-1)
    positive = squared > _TINY
    return ops.where(positive, ops.sqrt(ops.where(positive, squared, 1.0)), 0.0)


def _unit(x: Tensor, *, dtype: str = "float32") -> Tensor:
    """Scales vectors to length 1; zero vectors stay zero."""
    x = ops.cast(ops.convert_to_tensor(x), dtype)
    # Scale by the largest entry first: squares of tiny or huge entries would under- or overflow.
    largest = ops.max(ops.abs(x), axis=-1, keepdims=True)
    x = x / ops.stop_gradient(ops.where(largest > 0, largest, 1.0))
    squared = ops.sum(ops.square(x), axis=-1, keepdims=True)
    positive = squared > 0
    return ops.where(positive, x * ops.rsqrt(ops.where(positive, squared, 1.0)), 0.0)
