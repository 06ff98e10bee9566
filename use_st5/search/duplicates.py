"""The pairs of vectors that are most similar, among all pairs, and groups of similar vectors."""

from __future__ import annotations

import numpy as np

from use_st5.encode.similarity import cosine, unit_rows
from use_st5.io.progress import watched

# Rows and columns of the cosines that are computed at a time: 16 MB in float32.
_BLOCK = (1024, 4096)
# By how much a cosine in float32 may differ from that in float64.
_ERROR = 1e-5
# By how much the length of a unit vector in float32 may differ from 1.
_UNIT = 1e-6
# Pairs of a block beyond `max_pairs`, so that cosines in float64 decide; and pairs read at a time.
_FURTHER, _AT_ONCE = 32, 4096


def mine_paraphrases(
    vectors: np.ndarray,
    *,
    threshold: float = 0.9,
    max_pairs: int = 10_000,
    block: tuple[int, int] = _BLOCK,
    show_progress: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the pairs of rows with the largest cosines.

    All pairs are compared: time grows with the square of the rows. The memory is one block of
    cosines and four times `max_pairs` pairs; vectors that are not float32 of length 1 are copied.
    Pairs are chosen by cosines in float32; the cosines that are returned are computed in float64
    and rounded to float32. A zero row has a cosine of 0 with each other row.

    Args:
        vectors: `[rows, dim]`, finite.
        threshold: The smallest cosine of a pair.
        max_pairs: The largest number of pairs; those with the largest cosines count.
        block: Number of rows, and of other rows, whose cosines are computed at a time.
        show_progress: Whether to show a progress bar on standard error.

    Returns:
        The rows of each pair, the lower one first, int64 `[pairs, 2]`, and the cosines, float32
        `[pairs]`, the largest first. For equal cosines, lower rows come first.
    """
    units = _units(vectors, block[1])
    pairs, cosines, least = np.empty((0, 2), np.int64), np.empty(0, np.float32), threshold
    starts = range(0, len(vectors), block[0])
    for start in watched(starts, "Comparing", transient=True) if show_progress else starts:
        rows = units[start : start + block[0]]
        for other in range(start, len(vectors), block[1]):
            products = rows @ units[other : other + block[1]].T
            if other < start + len(rows):  # Each pair once, and no row with itself.
                products[np.tri(len(rows), products.shape[1], start - other, dtype=bool)] = -np.inf
            places = np.flatnonzero(products >= least - _ERROR)
            if len(places) > max_pairs + _FURTHER:
                order = np.argsort(-products.ravel()[places], kind="stable")
                places = places[order[: max_pairs + _FURTHER]]
            near = np.stack(np.divmod(places, products.shape[1]), axis=1) + (start, other)
            for some in np.split(near, range(_AT_ONCE, len(near), _AT_ONCE)):
                exact = cosine(vectors[some[:, 0]], vectors[some[:, 1]])
                pairs = np.concatenate([pairs, some[exact >= threshold]])
                cosines = np.append(cosines, exact[exact >= threshold].astype(np.float32))
            if len(pairs) > 3 * max_pairs:
                pairs, cosines = _best(pairs, cosines, max_pairs)
                least = max(threshold, float(cosines[-1]))
    return _best(pairs, cosines, max_pairs)


def find_communities(
    vectors: np.ndarray,
    *,
    threshold: float = 0.75,
    min_size: int = 10,
    block: tuple[int, int] = _BLOCK,
    show_progress: bool = False,
) -> list[np.ndarray]:
    """Finds groups of rows whose cosine with a central row reaches the threshold.

    As in sentence-transformers, the row with the most such neighbours makes the first group, and a
    row is in one group at most. Time grows with the square of the rows, memory with the rows.

    Args:
        vectors: `[rows, dim]`, finite.
        threshold: The smallest cosine with the central row.
        min_size: The smallest number of rows of a group; 1 puts each row into a group.
        block: Number of rows, and of other rows, whose cosines are computed at a time.
        show_progress: Whether to show a progress bar on standard error.

    Returns:
        The rows of each group, int64: the central row, then the others by their cosine with it. The
        largest group comes first.
    """
    units = _units(vectors, block[1])
    counts = np.zeros(len(units), np.int64)
    starts = range(0, len(units), block[0])
    for start in watched(starts, "Comparing", transient=True) if show_progress else starts:
        rows = units[start : start + block[0]]
        for other in range(0, len(units), block[1]):
            near = rows @ units[other : other + block[1]].T >= threshold
            counts[start : start + len(rows)] += np.count_nonzero(near, axis=1)
    counts = np.maximum(counts, 1)  # Of itself: a zero row has no cosine.
    is_free, groups = np.ones(len(units), bool), []
    for center in np.argsort(-counts, kind="stable").tolist():
        if not is_free[center] or counts[center] < min_size:
            continue
        cosines = units @ units[center]
        cosines[center] = np.inf
        members = np.flatnonzero((cosines >= threshold) & is_free)
        if len(members) >= min_size:
            members = members[np.argsort(-cosines[members], kind="stable")]
            is_free[members] = False
            groups.append(members)
    return sorted(groups, key=len, reverse=True)


def _units(vectors: np.ndarray, step: int) -> np.ndarray:
    """The rows scaled to length 1, float32, made in parts; rows of length 1 are not copied."""
    starts = range(0, len(vectors), step)
    lengths = (np.linalg.norm(vectors[start : start + step], axis=1) for start in starts)
    if vectors.dtype == np.float32 and all((np.abs(part - 1) < _UNIT).all() for part in lengths):
        return vectors
    units = np.empty(vectors.shape, np.float32)
    for start in starts:
        units[start : start + step] = unit_rows(vectors[start : start + step])
    if not np.isfinite(units).all():
        raise ValueError("vectors: expected finite numbers.")
    return units


def _best(pairs: np.ndarray, cosines: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -cosines))[:count]
    return pairs[order], cosines[order]
