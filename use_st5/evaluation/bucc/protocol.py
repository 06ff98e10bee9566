"""Mining translations out of two monolingual texts: the BUCC 2018 shared task.

The protocol is LASER's (tasks/bucc and source/mine_bitexts.py), which XTREME and m-ST5 follow.
XTREME's own script is broken as published (an undefined threshold), so nothing is taken from it.
MTEB's task of this name searches the gold sentences only, without margin and threshold: its numbers
cannot be compared.

The margin: Artetxe and Schwenk, "Margin-based Parallel Corpus Mining with Multilingual Sentence
Embeddings" (ACL 2019, arXiv 1811.01136), Eq. 2 with the ratio, and section 3.2's "max. score"
retrieval, as LASER's source/mine_bitexts.py does both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from use_st5._vectors import unit_rows
from use_st5.evaluation.bucc.readers import BUCCSet
from use_st5.search import exact_search
from use_st5.vector_store import Encode, VectorCache, as_cache


@dataclass(frozen=True)
class BUCCScore:
    """What the pairs with a margin of at least `threshold` are worth.

    Attributes:
        threshold: The least margin.
        precision: Share of these pairs that are gold, in 0 … 1.
        recall: Share of the gold pairs that are among them.
        f1: The harmonic mean of both.
    """

    threshold: float
    precision: float
    recall: float
    f1: float


def evaluate_bucc(
    encode: Encode, data: BUCCSet, *, threshold: float | None = None, k: int = 4
) -> BUCCScore:
    """Mines pairs with a margin of at least a threshold and compares them with the gold.

    Sentences that stand several times are mined once; a pair with such a sentence is dropped, since
    it is not known which id is meant. The gold pairs remain as they are.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`; any object that `numpy.asarray` takes.
        data: The texts and their gold pairs.
        threshold: The least margin, found on development data. None: the one with the largest F1
            on this very gold, whose scores are then optimistic.
        k: How many neighbours the margin takes.

    Raises:
        ValueError: `encode` gives another shape or numbers that are not finite.
    """
    pairs, margins = _mined(as_cache(encode), data, k)
    right = np.array([pair in data.gold for pair in pairs], dtype=bool)
    if threshold is None:
        threshold = best_threshold(margins, right, len(data.gold))
    extracted = right[margins >= threshold]
    found = int(extracted.sum())
    return BUCCScore(
        threshold=threshold,
        precision=found / len(extracted) if found else 0.0,
        recall=found / len(data.gold),
        f1=2 * found / (len(extracted) + len(data.gold)),
    )


def best_threshold(margins: np.ndarray, right: np.ndarray, gold: int) -> float:
    """The margin in the middle between the last pair to extract and the next, for the largest F1.

    LASER's BuccOptimize, but for two cases that it does not foresee: pairs of equal margins are
    extracted together or not at all, and if all are, the threshold is the least margin.

    Args:
        margins: Falling, `[pairs]`.
        right: Whether each pair is gold, `[pairs]`.
        gold: Number of gold pairs.

    Returns:
        The threshold; of several with the same F1 the largest. 0 where no pair is right.
    """
    if not right.any():
        return 0.0
    f1 = 2 * np.cumsum(right) / (np.arange(1, len(right) + 1) + gold)
    following = np.append(margins[1:], margins[-1])
    f1[:-1][margins[:-1] == margins[1:]] = -1.0
    last = int(f1.argmax())
    return float((margins[last] + following[last]) / 2)


def _mined(embed: VectorCache, data: BUCCSet, k: int) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Pairs of ids and their falling margins."""
    foreign, english = _unique(data.foreign), _unique(data.english)
    rows, margins = mine_pairs(embed([*foreign]), embed([*english]), k=k)
    foreign_ids, english_ids = [*foreign.values()], [*english.values()]
    pairs = [(foreign_ids[one], english_ids[other]) for one, other in rows.tolist()]
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    return [pair for pair in pairs if None not in pair], margins[known]


def _unique(sentences: dict[str, str]) -> dict[str, str | None]:
    """Sentence → its id; None where it has several."""
    counts = Counter(sentences.values())
    return {sentence: one if counts[sentence] == 1 else None for one, sentence in sentences.items()}


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
