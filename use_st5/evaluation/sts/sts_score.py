"""What an encoder scores on a set of sentence pairs."""

from __future__ import annotations

from dataclasses import dataclass


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
