"""Bitext mining: finds translations in two sets of sentences, by the margins of their vectors.

Artetxe and Schwenk, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings"
(ACL 2019, arXiv 1811.01136): Eq. 2 with the ratio, and the "max. score" retrieval of section 3.2,
both as in source/mine_bitexts.py of LASER.
"""

from __future__ import annotations

import numpy as np

from use_st5.encode.similarity import unit_rows
from use_st5.search.exact import exact_search


def mine_bitext(
    first: np.ndarray, second: np.ndarray, *, k: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs rows one to one, starting with the largest margins.

    The margin of two vectors is their cosine divided by the mean of two means: the mean cosines of
    each vector with its `k` nearest neighbours on the other side. Each row proposes the neighbour
    with the largest margin. The proposals of both sides are accepted in descending order of their
    margins, if neither row was paired before. For equal margins, proposals of the first rows come
    first, then lower rows.

    Args:
        first: Embeddings `[first, dim]` of distinct sentences.
        second: Embeddings `[second, dim]` of distinct sentences.
        k: Number of neighbours; all, if there are fewer.

    Returns:
        The rows, first and second, int64 `[pairs, 2]`, and their margins, float64 `[pairs]`, in
        descending order; only margins above 0.
    """
    first, second = unit_rows(first), unit_rows(second)
    forward_scores, second_rows = exact_search(first, second, k=min(k, len(second)))
    backward_scores, first_rows = exact_search(second, first, k=min(k, len(first)))
    first_means = forward_scores.mean(axis=1, dtype=np.float64)
    second_means = backward_scores.mean(axis=1, dtype=np.float64)
    second_best, forward_margins = _best(forward_scores, second_rows, first_means, second_means)
    first_best, backward_margins = _best(backward_scores, first_rows, second_means, first_means)
    pairs = np.concatenate(
        [
            np.stack([np.arange(len(first)), second_best], axis=1),
            np.stack([first_best, np.arange(len(second))], axis=1),
        ]
    )
    return _one_to_one(pairs, np.concatenate([forward_margins, backward_margins]))


def _best(
    cosines: np.ndarray, rows: np.ndarray, own_means: np.ndarray, their_means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns each query's neighbour with the largest margin, and that margin."""
    means = (own_means[:, None] + their_means[rows]) / 2
    # If the mean is 0 or less, as for a zero vector, nothing is near. A negative cosine divided by
    # a negative mean would give a margin above 0.
    margins = np.divide(cosines, means, out=np.zeros(means.shape), where=means > 0)
    best = margins.argmax(axis=1)
    queries = np.arange(len(rows))
    return rows[queries, best], margins[queries, best]


def _one_to_one(pairs: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    paired_first: set[int] = set()
    paired_second: set[int] = set()
    places = []
    for place in np.argsort(-margins, kind="stable"):
        first, second = pairs[place].tolist()
        if margins[place] <= 0:
            break
        if first not in paired_first and second not in paired_second:
            paired_first.add(first)
            paired_second.add(second)
            places.append(place)
    return pairs[places], margins[places]
