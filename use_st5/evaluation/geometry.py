"""Alignment and uniformity of embeddings on the unit sphere.

Wang and Isola, "Understanding Contrastive Representation Learning through Alignment and Uniformity
on the Hypersphere" (ICML 2020), with α = 2 and t = 2. Equations 3 and 4 of the Sentence-T5 paper
refer to them and print the distances without the square; its code, t5x_retrieval's utils.py,
squares them as Wang and Isola do.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from use_st5.encode.similarity import unit_rows
from use_st5.evaluation.sts import STSB_TEST, STSSet, embed_pairs, read_sts
from use_st5.evaluation.task import EvaluationTask, TaskContext, TaskResult

_T = 2.0
# Rows of the kernel at a time: limits the memory for any number of sentences.
_BLOCK = 1024


def alignment(first: np.ndarray, second: np.ndarray) -> float:
    """Mean squared distance of matching rows of `[pairs, dim]` scaled to length 1, in `[0, 4]`.

    A zero row stays zero. NaN if there are no pairs.
    """
    if not len(first):
        return math.nan
    differences = unit_rows(first) - unit_rows(second)
    return float(np.mean(np.sum(differences**2, axis=1)))


def uniformity(vectors: np.ndarray, *, self_pairs: bool = False) -> float:
    """`log E exp(−2·‖x − y‖²)` over the rows of `[n, dim]` scaled to length 1, in `[−8, 0]`.

    A zero row stays zero. The mean is over the pairs of two different rows, as in Wang and Isola's
    code; with `self_pairs`, it is over all n² ordered pairs, as in t5x_retrieval.
    """
    if len(vectors) < 2:
        raise ValueError(f"vectors: expected at least two rows, received {len(vectors)}.")
    count = len(vectors)
    total = _kernel_sum(unit_rows(vectors))
    if self_pairs:
        return math.log(total / count**2)
    return math.log((total - count) / (count * (count - 1)))  # a row's kernel with itself is 1


def _score(context: TaskContext, data: STSSet) -> TaskResult:
    """Alignment over the similar pairs and uniformity over all distinct sentences."""
    pairs = data.pairs
    sentences = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    vectors = context.embed(sentences)
    first, second = embed_pairs(context.embed, pairs)
    scored = np.array([pair.score for pair in pairs])
    above, at_least = scored > 4, scored >= 4
    scores = {
        "alignment_above_4": alignment(first[above], second[above]),
        "alignment_from_4": alignment(first[at_least], second[at_least]),
        "uniformity": uniformity(vectors),
        "uniformity_with_self_pairs": uniformity(vectors, self_pairs=True),
    }
    counts = {
        "pairs": len(pairs),
        "positives_above_4": int(above.sum()),
        "positives_from_4": int(at_least.sum()),
        "sentences": len(sentences),
    }
    return TaskResult("uniformity", scores, counts)


def _kernel_sum(vectors: np.ndarray) -> float:
    """The sum of `exp(−t·‖x − y‖²)` over all ordered pairs of rows, in blocks."""
    squares = np.sum(vectors**2, axis=1)
    total = 0.0
    for start in range(0, len(vectors), _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = squares[block, None] + squares - 2.0 * vectors[block] @ vectors.T
        total += float(np.exp(-_T * np.maximum(distances, 0.0)).sum())
    return total


TASKS = (
    EvaluationTask(
        "geometry",
        "geometry",
        "Alignment and uniformity",
        "Wang and Isola (ICML 2020) with alpha = 2, t = 2 on unit vectors of the STS-B test split; "
        "alignment: of the pairs with gold score above 4 (Figure 4 of Sentence-T5) and from 4 "
        "(SimCSE, whose authors took all of STS-B); uniformity: over all pairs of distinct "
        "sentences, and with self-pairs as in t5x_retrieval; lower is better",
        score=_score,
        reader=partial(read_sts, source=STSB_TEST),
        sources=(STSB_TEST,),
    ),
)
