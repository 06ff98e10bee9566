"""Pairs of translations by the ratio margin.

Artetxe and Schwenk, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings"
(ACL 2019, arXiv 1811.01136), Eq. 2 with the ratio, and section 3.2's "max. score" retrieval, as
LASER's source/mine_bitexts.py does both.
"""

from __future__ import annotations

import numpy as np

from use_st5._vectors import unit_rows
from use_st5.search import exact_search


def mine_pairs(
    foreign: np.ndarray, english: np.ndarray, *, k: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs rows one to one, those with the largest margins first.

    The margin of two vectors is their cosine, divided by the mean of two means: that of each one's
    cosines with its `k` nearest neighbours on the other side. Each row proposes the neighbour with
    which its margin is largest. The proposals of both sides are taken by falling margin unless one
    of their rows has been; of equal ones those of the foreign rows, and the lower rows, come first.

    Args:
        foreign: Embeddings `[foreign, dim]` of distinct sentences.
        english: Embeddings `[english, dim]` of distinct sentences.
        k: How many neighbours are considered, all where there are fewer.

    Returns:
        The rows, foreign and English, int64 `[pairs, 2]`, and their margins, float64 `[pairs]`,
        which fall; only those above 0.
    """
    foreign, english = unit_rows(foreign), unit_rows(english)
    forth, english_rows = exact_search(foreign, english, k=min(k, len(english)))
    back, foreign_rows = exact_search(english, foreign, k=min(k, len(foreign)))
    foreign_means = forth.mean(axis=1, dtype=np.float64)
    english_means = back.mean(axis=1, dtype=np.float64)
    english_best, forth_margins = _best(forth, english_rows, foreign_means, english_means)
    foreign_best, back_margins = _best(back, foreign_rows, english_means, foreign_means)
    pairs = np.concatenate(
        [
            np.stack([np.arange(len(foreign)), english_best], axis=1),
            np.stack([foreign_best, np.arange(len(english))], axis=1),
        ]
    )
    return _one_to_one(pairs, np.concatenate([forth_margins, back_margins]))


def _best(
    cosines: np.ndarray, rows: np.ndarray, own_means: np.ndarray, their_means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each query's neighbours the one with the largest margin, and that margin."""
    means = (own_means[:, None] + their_means[rows]) / 2
    # Both means are 0 where a vector is: no neighbour is nearer than another.
    margins = np.divide(cosines, means, out=np.zeros(means.shape), where=means != 0)
    best = margins.argmax(axis=1)
    queries = np.arange(len(rows))
    return rows[queries, best], margins[queries, best]


def _one_to_one(pairs: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    taken_foreign: set[int] = set()
    taken_english: set[int] = set()
    kept = []
    for place in np.argsort(-margins, kind="stable"):
        one, other = pairs[place].tolist()
        if margins[place] <= 0:
            break
        if one not in taken_foreign and other not in taken_english:
            taken_foreign.add(one)
            taken_english.add(other)
            kept.append(place)
    return pairs[kept], margins[kept]
