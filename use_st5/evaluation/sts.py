"""Semantic textual similarity: how well similarities of embeddings follow people's judgements.

The protocol is that of the SentEval toolkit and the Sentence-T5 paper (section 5.2): no training,
the similarity of the two embeddings, its correlation with the gold scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from use_st5.evaluation.sts_data import STSPair, STSSet, sts_suite
from use_st5.similarity import similarity_by_name

__all__ = ["STSScore", "evaluate_sts", "sts_suite"]

Encode = Callable[[list[str]], Any]


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
            `numpy.asarray` takes. It is called once with all distinct sentences.
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
    pairs = [pair for subset in data.subsets.values() for pair in subset]
    first, second = _embed(encode, pairs)
    gold = np.array([pair.score for pair in pairs])
    return [
        _score(data, metric, np.asarray(similarity(first, second), dtype=np.float64), gold)
        for metric, similarity in zip(metrics, similarities, strict=True)
    ]


def _embed(encode: Encode, pairs: list[STSPair]) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings `[pairs, dim]` of the first and of the second sentences."""
    sentences = [sentence for pair in pairs for sentence in (pair.first, pair.second)]
    rows = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
    vectors = np.asarray(encode([*rows]))
    if vectors.ndim != 2 or len(vectors) != len(rows):
        raise ValueError(
            f"encode: expected an array of shape [{len(rows)}, dim], received {vectors.shape}."
        )
    if not np.isfinite(vectors).all():
        bad = int((~np.isfinite(vectors).all(axis=1)).argmax())
        raise ValueError(
            f"encode: expected finite numbers, received NaN or infinity for {[*rows][bad]!r}."
        )
    first = vectors[[rows[pair.first] for pair in pairs]]
    return first, vectors[[rows[pair.second] for pair in pairs]]


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
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")  # undefined; SciPy would warn
    return float(correlate(x, y).statistic)
