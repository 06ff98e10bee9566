"""The rows of a matrix with the largest inner products, found by computing all of them."""

from __future__ import annotations

import numpy as np

# Queries and rows that are multiplied at a time: 16 MB of products in float32.
_BLOCK = (1024, 4096)
# The same for few queries.
_BLOCK_OF_FEW = (256, 16384)
# Up to this share of a block's products are summed again one by one; if more, all of them at once.
_SPARSE = 1 / 16
# If a query has more than this many times `k` candidates in a block, those far below the k-th of
# them are excluded first.
_MANY = 4
# The count of numbers that are gathered or sorted at a time.
_AT_ONCE = 2**20


def exact_search(
    queries: np.ndarray,
    corpus: np.ndarray,
    *,
    k: int,
    longest: float | None = None,
    block: tuple[int, int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the `k` rows of `corpus` with the largest inner products with each query.

    Use rows of length 1 to search by cosine. The search needs memory for the arguments, the result
    and a few blocks. It reads the corpus once, so a memory map (`numpy.load(file, mmap_mode="r")`)
    may be larger than the memory.

    Inner products are summed in float64 and rounded to float32. In float32 alone, the sum would
    depend on the position of a row in its block, and equal rows would not tie. With float64, the
    result does not depend on the blocks. float32 products only exclude rows that cannot be among
    the best, by their error bound.

    Args:
        queries: `[queries, dim]`, finite.
        corpus: `[rows, dim]`, finite.
        k: Number of rows to find for each query.
        longest: Upper bound of the length of the corpus rows, if known; 1 for rows of length 1. It
            saves a pass over the numbers, which is faster for few queries.
        block: Number of queries and number of rows whose products are computed at a time. None:
            blocks of 4 million products.

    Returns:
        The inner products, float32 `[queries, k]`, the largest first, and their rows, int64
        `[queries, k]`. For equal products, the lower row comes first.

    Raises:
        ValueError: The shapes do not fit, numbers are not finite, or `k` or `block` is too small or
            too large.
    """
    queries, corpus = np.asarray(queries), np.asarray(corpus)
    block = block or (_BLOCK_OF_FEW if len(queries) <= _BLOCK_OF_FEW[0] else _BLOCK)
    _check(queries, corpus, k, block)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    rows = np.zeros((len(queries), k), np.int64)
    for start in range(0, corpus.shape[0], block[1]):
        corpus_block = _Block(corpus[start : start + block[1]], start, longest)
        for first in range(0, len(queries), block[0]):
            part = slice(first, first + block[0])
            _search_block(_Block(queries[part], first), corpus_block, scores[part], rows[part])
    return scores, rows


def rescored(
    queries: np.ndarray, vectors: np.ndarray, candidates: np.ndarray, *, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best candidates for each query, by the products of `exact_search`.

    Args:
        queries: `[queries, dim]`, finite.
        vectors: `[rows, dim]`, finite; only the candidates are read.
        candidates: Rows for each query, int64 `[queries, c]` with c at least `k`; −1 means none.
        k: Number of candidates to return.

    Returns:
        As `exact_search`; −inf and −1 if a query has fewer than `k` candidates.
    """
    candidates = np.sort(candidates, axis=1)
    is_candidate = candidates >= 0
    scores = np.full(candidates.shape, -np.inf, np.float32)
    query_rows, columns = np.nonzero(is_candidate)
    scores[is_candidate] = _products(queries, vectors, query_rows, candidates[query_rows, columns])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(candidates, order, axis=1)


class _Block:
    """Some rows of a matrix, the first of which is row `start`.

    Attributes:
        vectors: The vectors as they were given, `[n, dim]`.
        narrow: The vectors in float32.
        lengths: Bounds of their lengths, float64 `[n]` or `[1]`; infinite if float32 cannot hold
            them.
    """

    def __init__(self, vectors: np.ndarray, start: int, longest: float | None = None) -> None:
        self.vectors = vectors
        self.start = start
        with np.errstate(over="ignore"):
            self.narrow = np.asarray(vectors, np.float32)
            if longest is not None:
                # Rounding to float32 may make a row longer.
                self.lengths = np.array([1.001 * longest])
                return
            squares = np.einsum("nd,nd->n", self.narrow, self.narrow)
        self.lengths = np.sqrt(squares.astype(np.float64))
        if not np.isfinite(self.lengths).all() and not np.isfinite(vectors).all():
            raise ValueError(
                "corpus: expected finite numbers, received NaN or infinity in rows "
                f"{start} to {start + len(vectors) - 1}."
            )


def _search_block(queries: _Block, corpus: _Block, scores: np.ndarray, rows: np.ndarray) -> None:
    """Merges the best rows of a block of the corpus into the best ones so far, in place."""
    error = _error_bound(queries, corpus)
    if error is not None:
        query_rows, columns = _candidates(queries.narrow @ corpus.narrow.T, scores, error)
        if len(query_rows) <= _SPARSE * len(queries.vectors) * len(corpus.vectors):
            products = _products(queries.vectors, corpus.vectors, query_rows, columns)
            _merge(
                scores, rows, *_padded(query_rows, columns + corpus.start, products, len(scores))
            )
            return
    numbers = corpus.start + np.arange(len(corpus.vectors))
    vectors = np.asarray(corpus.vectors, np.float64)
    size = max(1, _AT_ONCE // len(numbers))
    for first in range(0, len(scores), size):
        part = slice(first, first + size)
        products = (np.asarray(queries.vectors[part], np.float64) @ vectors.T).astype(np.float32)
        product_rows = np.broadcast_to(numbers, products.shape)
        _merge(scores[part], rows[part], np.arange(len(products)), products, product_rows)


def _error_bound(queries: _Block, corpus: _Block) -> np.ndarray | None:
    """Returns the largest error of a query's products in float32, `[queries]`; None: no bound.

    It is Higham's bound for a sum of `dim` products in any order, plus the underflow. It is
    doubled, which covers the rounding of the bound itself.
    """
    dim, longest = corpus.vectors.shape[1], corpus.lengths.max()
    if not queries.lengths.max() * longest < 1e37:
        return None
    underflow = dim + np.sqrt(dim) * (queries.lengths + longest)
    return (dim + 8) * 2.0**-23 * queries.lengths * longest + 2.0**-125 * underflow


def _candidates(
    products: np.ndarray, scores: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns queries and columns of all products that may beat a query's `k` best so far."""
    k = scores.shape[1]
    limits = scores[:, -1] - error.astype(np.float32)
    is_near = products >= limits[:, None]
    if k < products.shape[1] and np.count_nonzero(is_near) > _MANY * k * len(is_near):
        crowded_queries = np.flatnonzero(np.count_nonzero(is_near, axis=1) > _MANY * k)
        # In parts, because each part is copied.
        for part in np.array_split(crowded_queries, max(1, products.size // _AT_ONCE)):
            kth = np.partition(products[part], -k, axis=1)[:, -k]
            part_limits = kth - 2 * error[part].astype(np.float32)
            is_near[part] = products[part] >= np.maximum(part_limits, limits[part])[:, None]
    return np.divmod(np.flatnonzero(is_near), products.shape[1])


def _products(
    queries: np.ndarray, vectors: np.ndarray, which: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """The inner products of some queries with some rows, pair by pair, `[pairs]`."""
    products = np.empty(len(which), np.float32)
    size = max(1, _AT_ONCE // vectors.shape[1])
    for start in range(0, len(which), size):
        part = slice(start, start + size)
        query_vectors = np.asarray(queries[which[part]], np.float64)
        row_vectors = np.asarray(vectors[rows[part]], np.float64)
        products[part] = np.einsum("nd,nd->n", query_vectors, row_vectors)
    return products


def _padded(
    which: np.ndarray, rows: np.ndarray, found: np.ndarray, queries: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the queries that have products, and for each a line of products and rows.

    Args:
        which: The query of each product, in ascending order.
        rows: The row of each product.
        found: The products.
        queries: The number of queries.
    """
    counts = np.bincount(which, minlength=queries)
    touched = np.flatnonzero(counts)
    counts = counts[touched]
    starts = np.cumsum(counts) - counts
    lines = np.repeat(np.arange(len(touched)), counts)
    places = np.arange(len(which)) - starts[lines]
    width = counts.max(initial=0)
    products = np.full((len(touched), width), -np.inf, np.float32)
    numbers = np.zeros((len(touched), width), np.int64)
    products[lines, places], numbers[lines, places] = found, rows
    return touched, products, numbers


def _merge(
    scores: np.ndarray,
    rows: np.ndarray,
    touched: np.ndarray,
    found: np.ndarray,
    found_rows: np.ndarray,
) -> None:
    """Merges products of higher rows into the best scores and rows, `[queries, k]`, in place.

    A stable sort keeps the order of equal products: those that were found before have lower rows.
    """
    better = found.max(axis=1, initial=-np.inf) > scores[touched, -1]
    touched, found, found_rows = touched[better], found[better], found_rows[better]
    all_scores = np.concatenate([scores[touched], found], axis=1)
    all_rows = np.concatenate([rows[touched], found_rows], axis=1)
    order = np.argsort(-all_scores, axis=1, kind="stable")[:, : scores.shape[1]]
    scores[touched] = np.take_along_axis(all_scores, order, axis=1)
    rows[touched] = np.take_along_axis(all_rows, order, axis=1)


def _check(queries: np.ndarray, corpus: np.ndarray, k: int, block: tuple[int, int]) -> None:
    if queries.ndim != 2 or len(corpus.shape) != 2 or queries.shape[1] != corpus.shape[1]:
        raise ValueError(
            "Expected queries [queries, dim] and corpus [rows, dim] of one dim, received "
            f"{list(queries.shape)} and {list(corpus.shape)}."
        )
    if not corpus.shape[0]:
        raise ValueError(f"corpus: expected one row or more, received {list(corpus.shape)}.")
    if not 1 <= k <= corpus.shape[0]:
        raise ValueError(f"k: expected 1 to {corpus.shape[0]}, the rows of corpus; received {k}.")
    if min(block) < 1:
        raise ValueError(f"block: expected two numbers of at least 1, received {block}.")
    if not np.isfinite(queries).all():
        raise ValueError("queries: expected finite numbers, received NaN or infinity.")
