"""The rows of a matrix with the largest inner products, found by computing all of them."""

from __future__ import annotations

import numpy as np

# Queries and rows that are multiplied at a time: 16 MB of products in float32.
_BLOCK = (1024, 4096)
# The same for few queries.
_BLOCK_OF_FEW = (256, 16384)
# Further candidates, so that the products in float64 decide what is nearly equal in float32.
_FURTHER = 32
# The count of numbers that are gathered at a time.
_AT_ONCE = 2**20


def exact_search(
    queries: np.ndarray,
    corpus: np.ndarray,
    *,
    k: int,
    among: np.ndarray | None = None,
    block: tuple[int, int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the `k` rows of `corpus` with the largest inner products with each query.

    Use rows of length 1 to search by cosine. The search needs memory for the arguments, the result
    and a few blocks. It reads the corpus once, so a memory map (`numpy.load(file, mmap_mode="r")`)
    may be larger than the memory. Rows are chosen by products in float32; the products that are
    returned are summed in float64 and rounded to float32.

    Args:
        queries: `[queries, dim]`, finite.
        corpus: `[rows, dim]`, finite.
        k: Number of rows to find for each query.
        among: The rows of `corpus` to search, int64, ascending. None: all.
        block: Number of queries and number of rows whose products are computed at a time. None:
            blocks of 4 million products.

    Returns:
        The inner products, float32 `[queries, k]`, the largest first, and their rows, int64
        `[queries, k]`. For equal products, the lower row comes first.
    """
    queries, corpus = np.asarray(queries), np.asarray(corpus)
    if queries.ndim != 2 or len(corpus.shape) != 2 or queries.shape[1] != corpus.shape[1]:
        shapes = f"{list(queries.shape)} and {list(corpus.shape)}"
        raise ValueError(f"Expected [queries, dim] and [rows, dim] of one dim, received {shapes}.")
    count = corpus.shape[0] if among is None else len(among)
    if not 1 <= k <= count:
        raise ValueError(f"k: expected 1 to {count}, the rows to search; received {k}.")
    if not np.isfinite(queries).all():
        raise ValueError("queries: expected finite numbers.")
    block = block or (_BLOCK_OF_FEW if len(queries) <= _BLOCK_OF_FEW[0] else _BLOCK)
    narrow_queries = np.asarray(queries, np.float32)
    kept = min(k + _FURTHER, count)
    scores = np.full((len(queries), kept), -np.inf, np.float32)
    rows = np.full((len(queries), kept), -1, np.int64)
    for start in range(0, count, block[1]):
        searched = slice(start, start + block[1])
        part = np.asarray(corpus[searched if among is None else among[searched]], np.float32)
        for first in range(0, len(queries), block[0]):
            chosen = slice(first, first + block[0])
            products = narrow_queries[chosen] @ part.T
            _merge(scores[chosen], rows[chosen], products, start)
    if among is not None:
        rows = among[rows]
    return rescored(queries, corpus, rows, k=k)


def _merge(scores: np.ndarray, rows: np.ndarray, products: np.ndarray, start: int) -> None:
    """Merges the products of a block, whose first row is `start`, into the best ones, in place."""
    best, k = products.max(axis=1), scores.shape[1]
    if not np.isfinite(best).all():
        raise ValueError(f"corpus: expected finite numbers that fit float32, from row {start}.")
    touched = np.flatnonzero(best > scores[:, -1])
    if len(touched) < len(products):
        products = products[touched]
    columns = np.broadcast_to(np.arange(products.shape[1]), products.shape)
    if products.shape[1] > k:
        kth = np.partition(products, -k, axis=1)[:, -k, None]
        is_near = products >= kth
        is_tied = np.count_nonzero(is_near, axis=1) > k  # Of equal products the first ones count.
        columns = np.empty((len(products), k), np.int64)
        columns[~is_tied] = np.nonzero(is_near[~is_tied])[1].reshape(-1, k)
        columns[is_tied] = np.argsort(-products[is_tied], axis=1, kind="stable")[:, :k]
        products = np.take_along_axis(products, columns, axis=1)
    # A stable sort keeps the order of equal products: those that were found before come first.
    all_scores = np.concatenate([scores[touched], products], axis=1)
    all_rows = np.concatenate([rows[touched], columns + start], axis=1)
    order = np.argsort(-all_scores, axis=1, kind="stable")[:, :k]
    scores[touched] = np.take_along_axis(all_scores, order, axis=1)
    rows[touched] = np.take_along_axis(all_rows, order, axis=1)


def rescored(
    queries: np.ndarray, vectors: np.ndarray, candidates: np.ndarray, *, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best candidates for each query, by products that are summed in float64.

    Args:
        queries: `[queries, dim]`, finite.
        vectors: `[rows, dim]`, finite; only the candidates are read.
        candidates: Rows for each query, int64 `[queries, c]` with c at least `k`; −1 means none.
        k: Number of candidates to return.

    Returns:
        As `exact_search`; −inf and −1 if a query has fewer than `k` candidates.
    """
    candidates = np.sort(candidates, axis=1)
    scores = np.full(candidates.shape, -np.inf, np.float32)
    size = max(1, _AT_ONCE // (vectors.shape[1] * max(1, candidates.shape[1])))
    for start in range(0, len(queries), size):
        part = slice(start, start + size)
        some_queries = np.asarray(queries[part], np.float64)
        some_vectors = np.asarray(vectors[candidates[part]], np.float64)
        scores[part] = np.einsum("qd,qcd->qc", some_queries, some_vectors)
    scores[candidates < 0] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(candidates, order, axis=1)
