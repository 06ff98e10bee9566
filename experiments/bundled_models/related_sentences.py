"""Groups of related sentences, which a student learns to distinguish."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from keras import ops

from experiments.bundled_models.alterations import generate_alterations
from use_st5.data import normalized

NEIGHBOURS = 2
GROUP_SIZE = 2 + NEIGHBOURS
_QUERIES = 1_024  # compared with all sentences at a time

Pair = tuple[str, str]
Length = tuple[int, int]  # fewest and most words


def pair_texts(pairs: Mapping[Length, Sequence[Pair]]) -> list[str]:
    """All sentences and alterations."""
    return [text for each in pairs.values() for pair in each for text in pair]


def altered_sentences(
    sentences: Sequence[str],
    fewest: int,
    most: int,
    count: int,
    *,
    held_out: Collection[str] = (),
    seed: int = 0,
) -> list[Pair]:
    """Some sentences of a length, and an alteration of each.

    Args:
        sentences: The sentences to draw from.
        fewest: Words of the shortest sentence.
        most: Words of the longest sentence; an alteration may have a few more.
        count: The number of pairs to draw; fewer if there are not enough suitable sentences.
        held_out: Normalized sentences that no alteration may be equal to.
        seed: Same seed and sentences, same pairs.

    Returns:
        Pairs (sentence, alteration), in random order.
    """
    suitable = [each for each in sentences if fewest <= each.count(" ") + 1 <= most]
    sample = random.Random(seed).sample(suitable, min(count, len(suitable)))
    pairs = zip(sample, generate_alterations(sample, seed=seed), strict=True)
    return [(each, altered) for each, altered in pairs if normalized(altered) not in held_out]


def related_rows(vectors: np.ndarray) -> np.ndarray:
    """The row numbers of groups of related sentences, among alternating sentences and alterations.

    Args:
        vectors: The teacher's vectors of the sentences, which have about the same length,
            `[pairs, dim]`; there must be more than `NEIGHBOURS`.

    Returns:
        int `[pairs * GROUP_SIZE]`: for each sentence its row, the row of its alteration, and the
        rows of the sentences nearest to it.
    """
    units = vectors.astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    corpus = ops.convert_to_tensor(units)
    groups = np.empty((len(units), GROUP_SIZE), np.int64)
    for start in range(0, len(units), _QUERIES):
        cosines = ops.matmul(corpus[start : start + _QUERIES], ops.transpose(corpus))
        nearest = ops.convert_to_numpy(ops.top_k(cosines, NEIGHBOURS + 1)[1])
        for row, near in enumerate(nearest, start):  # A row may be its own nearest neighbour.
            neighbours = [other for other in near if other != row][:NEIGHBOURS]
            groups[row] = [2 * row, 2 * row + 1, *(2 * other for other in neighbours)]
    return groups.reshape(-1)
