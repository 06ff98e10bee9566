"""Semantic textual similarity: how well similarities of embeddings follow people's judgements.

The protocol is that of the SentEval toolkit and the Sentence-T5 paper (section 5.2): no training,
the similarity of the two embeddings, its correlation with the gold scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from use_st5._vectors import similarity_by_name
from use_st5.evaluation.sts.sts_pair import STSPair
from use_st5.evaluation.sts.sts_score import STSScore
from use_st5.evaluation.sts.sts_set import STSSet
from use_st5.vector_store import Encode, VectorCache, as_cache

_ROUNDING = 1e-12


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
    gold = np.array([pair.score for pair in pairs])
    return [
        _score(data, metric, similarity(first, second), gold)
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


def _score(data: STSSet, metric: str, similarity: np.ndarray, gold: np.ndarray) -> STSScore:
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
