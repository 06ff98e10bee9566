"""Alignment and uniformity of embeddings on the unit sphere.

Wang and Isola, "Understanding Contrastive Representation Learning through Alignment and Uniformity
on the Hypersphere" (ICML 2020), with α = 2 and t = 2. Equations 3 and 4 of the Sentence-T5 paper
refer to them and print the distances without the square; its code, t5x_retrieval's utils.py,
squares them as Wang and Isola do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from use_st5._vectors import unit_rows
from use_st5.evaluation.sts import STSB_TEST, STSPair, embed_pairs, read_sts
from use_st5.evaluation.task import EvaluationTask, TaskResult
from use_st5.vector_store import Encode, as_cache

_T = 2.0
# Rows of the kernel at a time: bounds the memory at any number of sentences.
_BLOCK = 1024


def alignment(first: np.ndarray, second: np.ndarray) -> float:
    """Mean squared distance of matching rows of `[pairs, dim]` scaled to length 1, in `[0, 4]`.

    A zero row stays zero. NaN where there are no pairs.
    """
    if not len(first):
        return math.nan
    differences = unit_rows(first) - unit_rows(second)
    return float(np.mean(np.sum(differences**2, axis=1)))


def uniformity(vectors: np.ndarray, *, self_pairs: bool = False) -> float:
    """`log E exp(−2·‖x − y‖²)` over the rows of `[n, dim]` scaled to length 1, in `[−8, 0]`.

    A zero row stays zero.

    Args:
        vectors: At least two rows.
        self_pairs: Whether the mean is over all n² ordered pairs, as in t5x_retrieval, and not
            only over those of two different rows, as in Wang and Isola's code.

    Raises:
        ValueError: There are fewer than two rows.
    """
    if len(vectors) < 2:
        raise ValueError(f"vectors: expected at least two rows, received {len(vectors)}.")
    count = len(vectors)
    total = _kernel_sum(unit_rows(vectors))
    if self_pairs:
        return math.log(total / count**2)
    return math.log((total - count) / (count * (count - 1)))  # a row's kernel with itself is 1


def evaluate_geometry(encode: Encode, pairs: Sequence[STSPair]) -> TaskResult:
    """Measures alignment over the similar pairs and uniformity over all distinct sentences.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`, rows in the same order.
        pairs: With scores from 0 to 5.

    Returns:
        Scores, of which lower is better: "alignment_above_4", the mean squared distance of the
        pairs with a score above 4, in `[0, 4]` (Sentence-T5; NaN where there is none);
        "alignment_from_4", of those with 4 or more; "uniformity", the logarithm of the mean
        Gaussian kernel of all pairs of distinct sentences, in `[−8, 0]`; and
        "uniformity_with_self_pairs", each sentence paired with itself, too (t5x_retrieval).

    Raises:
        ValueError: There are fewer than two distinct sentences; `encode` gives another shape or
            numbers that are not finite.
    """
    sentences = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    if len(sentences) < 2:
        raise ValueError(f"pairs: expected two distinct sentences, received {len(sentences)}.")
    embed = as_cache(encode)
    vectors = embed(sentences)
    first, second = embed_pairs(embed, pairs)
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
        score=lambda context, data: evaluate_geometry(context.embed, data.pairs),
        reader=partial(read_sts, source=STSB_TEST),
        sources=(STSB_TEST,),
    ),
)
