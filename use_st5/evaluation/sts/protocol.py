"""Semantic textual similarity: how well similarities of embeddings follow people's judgements.

The protocol is that of the SentEval toolkit and the Sentence-T5 paper (section 5.2): no training,
the similarity of the two embeddings, its correlation with the gold scores. Pairs by superficial
similarity: Tsukagoshi, Sasano and Takeda, "Comparison and Combination of Sentence Embeddings
Derived from Different Supervision Signals" (*SEM 2022), section 3.2 and Figure 3.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from use_st5._vectors import similarity_by_name
from use_st5.evaluation.sts.readers import STSPair, STSSet
from use_st5.vector_store import Encode, VectorCache, as_cache

_ROUNDING = 1e-12
_PARTS = 5
# What stands between blanks, without punctuation at its ends: "U.S." is one word, "guitar." no
# other than "guitar".
_WORD = re.compile(r"\w+(?:[^\w\s]+\w+)*")


@dataclass(frozen=True)
class STSScore:
    """Correlations of one set in all three aggregations that papers use.

    They differ by several points on sets of several subsets, so every number must name its own:
    "all" correlates over all pairs at once (SimCSE, Sentence-T5), "mean" averages the subsets'
    correlations, "wmean" does so weighted by their number of pairs (the SemEval shared tasks).

    Attributes:
        name: The set's name.
        metric: The similarity: "cosine", "angular" or "dot".
        pairs: Number of pairs.
        spearman: Aggregation or subset → Spearman's rank correlation, in `[-1, 1]`.
        pearson: Aggregation or subset → Pearson's correlation, in `[-1, 1]`. NaN in either where
            all similarities or all gold scores of a part are equal.
    """

    name: str
    metric: str
    pairs: int
    spearman: dict[str, float]
    pearson: dict[str, float]


def evaluate_sts(
    encode: Encode, data: STSSet | Sequence[STSPair], *, metrics: Sequence[str] = ("cosine",)
) -> list[STSScore]:
    """Scores an encoder on one set; each distinct sentence is encoded once.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`, rows in the same order; any object that
            `numpy.asarray` takes. A `VectorCache` remembers them for the next set.
        data: A set, or pairs (taken as a set of one subset).
        metrics: Among "cosine", "angular" (Eq. 1 of the USE paper) and "dot". Spearman is the same
            for the first two but for rounding; Pearson is not.

    Returns:
        One `STSScore` per metric, in order.

    Raises:
        ValueError: No pairs; `encode` gives another shape or numbers that are not finite; a metric
            is unknown.
    """
    if not isinstance(data, STSSet):
        data = STSSet("pairs", {"pairs": list(data)})
    if empty := [name for name, pairs in data.subsets.items() if len(pairs) < 2]:
        raise ValueError(f"{data.name}: a correlation needs two pairs; too few in {empty}.")
    if not data.subsets:
        raise ValueError(f"{data.name}: expected pairs of sentences, received none.")
    similarities = [similarity_by_name(metric) for metric in metrics]
    pairs = data.pairs
    first, second = embed_pairs(as_cache(encode), pairs)
    return [
        score_similarities(data, similarity(first, second), metric=metric)
        for metric, similarity in zip(metrics, similarities, strict=True)
    ]


def subset_details(data: STSSet, score: STSScore) -> dict[str, dict[str, Any]]:
    """Subset → its "pairs", "spearman" and "pearson", as JSON takes it."""
    return {
        name: {
            "pairs": len(pairs),
            "spearman": score.spearman[name],
            "pearson": score.pearson[name],
        }
        for name, pairs in data.subsets.items()
    }


def embed_pairs(embed: VectorCache, pairs: Sequence[STSPair]) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings `[pairs, dim]` of the first and of the second sentences."""
    vectors = embed([sentence for pair in pairs for sentence in (pair.first, pair.second)])
    return vectors[::2], vectors[1::2]


def score_similarities(data: STSSet, similarity: np.ndarray, *, metric: str) -> STSScore:
    """The correlations of similarities that any model gave to the pairs of a set.

    Args:
        data: The set.
        similarity: `[pairs]`, in the order of `data.pairs`.
        metric: What the similarities are, for the score's name.
    """
    gold = np.array([pair.score for pair in data.pairs])
    sizes = [len(subset) for subset in data.subsets.values()]
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    correlations = {}
    for kind, correlate in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        each = [_correlation(correlate, similarity[part], gold[part]) for part in parts]
        correlations[kind] = {
            "all": _correlation(correlate, similarity, gold),
            "mean": float(np.mean(each)),
            "wmean": float(np.average(each, weights=sizes)),
            **dict(zip(data.subsets, each, strict=True)),
        }
    return STSScore(data.name, metric, len(gold), **correlations)


def _correlation(correlate: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> float:
    # Equal but for rounding errors: undefined, SciPy would correlate the errors.
    if any(np.ptp(values) <= _ROUNDING * np.abs(values).max() for values in (x, y)):
        return float("nan")
    return float(correlate(x, y).statistic)


@dataclass(frozen=True)
class DiceQuintile:
    """How well similarities follow the gold scores among pairs that share about as many words.

    Attributes:
        dice_from: The lowest Dice coefficient of its pairs, in `[0, 1]`.
        dice_to: The highest; the next quintile may begin with the same value.
        pairs: Number of pairs.
        spearman: Spearman's rank correlation of cosine and gold score; NaN where it is undefined.
        pearson: Pearson's correlation.
    """

    dice_from: float
    dice_to: float
    pairs: int
    spearman: float
    pearson: float


def dice_coefficient(first: str, second: str) -> float:
    """The Dice coefficient `2·|A ∩ B| / (|A| + |B|)` of the sets of words of two sentences.

    The paper does not say what a word is. The coefficients of its Table 2 come out with lower case
    and without punctuation, which is what is done here, and not otherwise.

    Returns:
        A number in `[0, 1]`; 1 for two sentences without any word.
    """
    a, b = (set(_WORD.findall(sentence.lower())) for sentence in (first, second))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


def evaluate_by_dice(encode: Encode, pairs: Sequence[STSPair]) -> list[DiceQuintile]:
    """Scores an encoder on each fifth of the pairs, sorted by their Dice coefficients.

    Fifths differ by at most one pair. Pairs of equal coefficients, of which there are many, are
    put in an order that depends neither on the order given nor on their genre; on the STS Benchmark
    the order of the files gives correlations that differ by a few hundredths.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`, rows in the same order.
        pairs: At least ten; in the paper all splits of the STS Benchmark.

    Returns:
        The quintiles, from few shared words to many.

    Raises:
        ValueError: Too few pairs; `encode` gives another shape or numbers that are not finite.
    """
    if len(pairs) < 2 * _PARTS:
        raise ValueError(f"pairs: expected at least {2 * _PARTS}, received {len(pairs)}.")
    embed = as_cache(encode)
    ranked = sorted(pairs, key=lambda pair: (_dice(pair), _shuffled(pair)))
    bounds = [len(ranked) * part // _PARTS for part in range(_PARTS + 1)]
    return [_quintile(embed, ranked[start:end]) for start, end in itertools.pairwise(bounds)]


def _quintile(embed: VectorCache, pairs: list[STSPair]) -> DiceQuintile:
    """The score of pairs sorted by their coefficients."""
    (score,) = evaluate_sts(embed, pairs)
    return DiceQuintile(
        _dice(pairs[0]), _dice(pairs[-1]), len(pairs), score.spearman["all"], score.pearson["all"]
    )


def _dice(pair: STSPair) -> float:
    return dice_coefficient(pair.first, pair.second)


def _shuffled(pair: STSPair) -> bytes:
    """A key that sorts pairs as if at random, but always alike."""
    return hashlib.sha256(repr(pair).encode()).digest()
