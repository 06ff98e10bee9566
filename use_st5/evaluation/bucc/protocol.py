"""Mining translations out of two monolingual texts: the BUCC 2018 shared task.

The protocol is LASER's (tasks/bucc and source/mine_bitexts.py), which XTREME and m-ST5 follow.
XTREME's own script is broken as published (an undefined threshold), so nothing is taken from it.
MTEB's task of this name searches the gold sentences only, without margin and threshold: its numbers
cannot be compared.

The margin and the retrieval are those of `use_st5.search.mine_bitext`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.bucc.readers import BUCCSet
from use_st5.search import mine_bitext
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
    rows, margins = mine_bitext(embed([*foreign]), embed([*english]), k=k)
    foreign_ids, english_ids = [*foreign.values()], [*english.values()]
    pairs = [(foreign_ids[one], english_ids[other]) for one, other in rows.tolist()]
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    return [pair for pair in pairs if None not in pair], margins[known]


def _unique(sentences: dict[str, str]) -> dict[str, str | None]:
    """Sentence → its id; None where it has several."""
    counts = Counter(sentences.values())
    return {sentence: one if counts[sentence] == 1 else None for one, sentence in sentences.items()}
