"""Softmax over the rows of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from use_st5.layers.attention import EXCLUDED
from use_st5.losses.task_loss import Gather, cross_entropy

# Factors of positions; a longer row uses them again from the first.
_FACTORS = 8192


def in_batch_softmax(
    queries: Any,
    candidates: Any,
    repeated: Any,
    *,
    scale: float,
    margin: float,
    gather: Gather,
) -> tuple[Any, dict[str, Any]]:
    """`−log softmax_j(scale · (qᵢ·cⱼ − margin·[j = i]))[i]`, mean over the replica's rows i.

    Henderson et al. 2017, section 4; the margin is from Yang et al. 2019.

    Args:
        queries: float32 `[rows, dimension]` of this replica.
        candidates: float32 `[all, dimension]`: first the gathered true candidates, in the order of
            the gathered rows, then other candidates.
        repeated: bool `[rows, all]`: True for candidates that are not used as negatives. The value
            for the true candidate has no effect.
        scale: Factor on the products, the inverse of the temperature.
        margin: Subtracted from the true candidate's product.
        gather: The function that gathered the rows.

    Returns:
        The loss, and the accuracy as its metric.
    """
    products = ops.matmul(queries, ops.transpose(candidates))
    rows = ops.shape(queries)[0]
    labels = gather.first_row(rows) + ops.arange(rows, dtype="int32")
    true_mask = ops.arange(ops.shape(products)[1], dtype="int32")[None, :] == labels[:, None]
    logits = scale * (products - margin * ops.cast(true_mask, "float32"))
    logits = ops.where(ops.logical_and(repeated, ops.logical_not(true_mask)), EXCLUDED, logits)
    return cross_entropy(labels, logits)


def equal_ids(a: Any, b: Any) -> Any:
    """Compares rows of ids, `[n, length]` and `[m, other length]` → bool `[n, m]`, True if equal.

    It compares keys of the rows: comparing all ids of a batch of 2048 would take hundreds of
    megabytes.
    """
    keys_a, keys_b = (_keys(ids) for ids in (a, b))
    return ops.all(keys_a[:, None] == keys_b[None, :], axis=-1)


def key_factors(length: int) -> np.ndarray:
    """A random odd factor for each position, int64 `[length]`.

    The key of a row is `Σ id · factor` modulo 2^64. Padding (0) does not change the key. Equal rows
    have equal keys. Rows that differ in one id have different keys; other rows have equal keys with
    a probability of about 2^−63, unless the same ids are at places that are 8192 apart.
    """
    factors = np.random.default_rng(0).integers(2**64, size=_FACTORS, dtype=np.uint64)
    return np.resize((factors | np.uint64(1)).view(np.int64), length)


def _keys(ids: Any) -> Any:
    """Keys as two int32 numbers, `[n, length]` → `[n, 2]`: JAX has no int64 by default."""
    # Batches have several widths, so the width may be unknown when the graph is built.
    length = ids.shape[1] or _FACTORS
    factors = key_factors(length).astype("<i8").view("<i4").reshape(-1, 2)
    if ids.shape[1] is None:
        places = ops.arange(ops.shape(ids)[1], dtype="int32") % _FACTORS
        factors = ops.take(factors, places, axis=0)
    return ops.sum(ops.cast(ids, "int32")[:, :, None] * factors, axis=1)
