"""Pairs of sentences from running text, for models that score pairs without labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from use_st5.search import exact_search

Pair = tuple[str, str]


def mined_pairs(
    sentences: Sequence[str],
    vectors: np.ndarray,
    *,
    neighbours: int = 1,
    others: int = 1,
    seed: int = 0,
) -> list[Pair]:
    """Pairs each sentence with its nearest neighbours, and with some random sentences.

    Pairs of neighbours are all similar and random pairs dissimilar; a model that learns scores
    needs both. Equal sentences make no pair, and no pair occurs twice, in either order.

    Args:
        sentences: The sentences; of equal ones, only the first is used.
        vectors: float `[sentences, dimension]`, of any encoder.
        neighbours: The number of neighbours of each sentence, by cosine.
        others: The number of random partners of each sentence, drawn from all sentences.
        seed: Seed of the draw.

    Returns:
        Pairs in the order of their first sentences: neighbours, the nearest first, then others.
    """
    if len(vectors) != len(sentences):
        raise ValueError(f"Expected {len(sentences)} vectors, received {len(vectors)}.")
    places: dict[str, int] = {}
    for row, text in enumerate(sentences):
        places.setdefault(text, row)
    texts, rows = [*places], [*places.values()]
    if not 0 <= max(neighbours, others) < len(texts) or min(neighbours, others) < 0:
        raise ValueError(
            f"Expected more than {max(neighbours, others)} different sentences, because each has "
            f"so many pairs; received {len(texts)}."
        )
    unit = vectors[rows] / np.maximum(np.linalg.norm(vectors[rows], axis=1, keepdims=True), 1e-12)
    nearest = exact_search(unit, unit, k=neighbours + 1)[1]
    rng = np.random.default_rng(seed)
    pairs: dict[frozenset[str], Pair] = {}
    for row, text in enumerate(texts):
        near = [other for other in nearest[row] if other != row][:neighbours]
        draws = rng.choice(len(texts) - 1, others, replace=False)
        # The row itself is left out of the draw.
        for other in [*near, *(draws + (draws >= row))]:
            pairs.setdefault(frozenset((text, texts[other])), (text, texts[other]))
    return list(pairs.values())
