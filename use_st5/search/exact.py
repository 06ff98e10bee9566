"""The rows of a matrix with the largest inner products, found by computing all of them."""

from __future__ import annotations

from itertools import product

import numpy as np

# 4,096 × 1,024 inner products at a time: 32 MB in float64 and 16 MB in float32.
_BLOCK = (4096, 1024)


def exact_search(
    queries: np.ndarray, corpus: np.ndarray, *, k: int, block: tuple[int, int] = _BLOCK
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the `k` rows of `corpus` with the largest inner products with each query.

    Give rows of length 1 to search by cosine. Beside its arguments and its result it needs the
    memory of one block, whatever the sizes.

    Inner products are summed in float64 and rounded to float32. In float32 alone the sum of the
    same two rows depends on where in a block they stand, so that equal rows would not tie; so
    neither ties nor the result depend on the blocks.

    Args:
        queries: `[queries, dim]`, finite.
        corpus: `[rows, dim]`, finite.
        k: How many rows to find for each query.
        block: How many queries are multiplied with how many rows at a time.

    Returns:
        The inner products, float32 `[queries, k]`, the largest first, and the rows that they
        belong to, int64 `[queries, k]`. Of equal ones the lower row comes first.

    Raises:
        ValueError: The shapes do not fit, numbers are not finite, or `k` or `block` is too small
            or too large.
    """
    queries, corpus = np.asarray(queries), np.asarray(corpus)
    _check(queries, corpus, k, block)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    rows = np.zeros((len(queries), k), np.int64)
    starts = product(range(0, len(queries), block[0]), range(0, len(corpus), block[1]))
    for first, start in starts:
        part = slice(first, first + block[0])
        some = corpus[start : start + block[1]].astype(np.float64)
        products = (queries[part].astype(np.float64) @ some.T).astype(np.float32)
        _merge(scores[part], rows[part], products, start)
    return scores, rows


def _merge(scores: np.ndarray, rows: np.ndarray, products: np.ndarray, start: int) -> None:
    """Puts what a block has to add into the best found so far, both `[queries, k]`, in place.

    Taking one maximum after another is fast where `k` is small and few queries find something new
    in a block, which is so in all but the first. It also keeps the order of equal products:
    `argmax` gives the lowest row, and a later one displaces only what is less than it.
    """
    open_queries = np.arange(len(products))
    for _ in range(scores.shape[1]):
        columns = products.argmax(axis=1)
        best = products[np.arange(len(products)), columns]
        better = best > scores[open_queries, -1]
        if not better.any():
            return
        if not better.all():
            products, open_queries = products[better], open_queries[better]
            columns, best = columns[better], best[better]
        products[np.arange(len(products)), columns] = -np.inf
        found, found_rows = scores[open_queries], rows[open_queries]
        found[:, -1], found_rows[:, -1] = best, columns + start
        order = np.argsort(-found, axis=1, kind="stable")
        scores[open_queries] = np.take_along_axis(found, order, axis=1)
        rows[open_queries] = np.take_along_axis(found_rows, order, axis=1)


def _check(queries: np.ndarray, corpus: np.ndarray, k: int, block: tuple[int, int]) -> None:
    if queries.ndim != 2 or corpus.ndim != 2 or queries.shape[1] != corpus.shape[1]:
        raise ValueError(
            "Expected queries [queries, dim] and corpus [rows, dim] of one dim, received "
            f"{list(queries.shape)} and {list(corpus.shape)}."
        )
    if not 1 <= k <= len(corpus):
        raise ValueError(f"k: expected 1 to {len(corpus)}, the rows of corpus; received {k}.")
    if min(block) < 1:
        raise ValueError(f"block: expected two numbers of at least 1, received {block}.")
    for name, vectors in (("queries", queries), ("corpus", corpus)):
        if not np.isfinite(vectors).all():
            raise ValueError(f"{name}: expected finite numbers, received NaN or infinity.")
