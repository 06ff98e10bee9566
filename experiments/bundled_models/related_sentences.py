"""Groups of related sentences, which a student learns to distinguish."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from experiments.bundled_models.alterations import generate_alterations
from use_st5.data.text_hashes import normalized
from use_st5.search import exact_search

NEIGHBOURS = 2
GROUP_SIZE = 2 + NEIGHBOURS

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
        sentences: To draw from.
        fewest: Words of the shortest.
        most: Words of the longest; an alteration may have a few more.
        count: How many, if there are so many.
        held_out: Normalized sentences that no alteration may become.
        seed: Same seed and sentences, same pairs.

    Returns:
        Pairs (sentence, alteration), in random order.
    """
    suitable = [each for each in sentences if fewest <= each.count(" ") + 1 <= most]
    chosen = random.Random(seed).sample(suitable, min(count, len(suitable)))
    pairs = zip(chosen, generate_alterations(chosen, seed=seed), strict=True)
    return [(each, altered) for each, altered in pairs if normalized(altered) not in held_out]


def related_groups(pairs: Sequence[Pair], vectors: np.ndarray) -> Iterator[list[str]]:
    """Each sentence with its alteration and the sentences nearest to it.

    Args:
        pairs: What `altered_sentences` gives, more than `NEIGHBOURS`.
        vectors: The teacher's vectors of their sentences, rows of length 1, `[pairs, dim]`.

    Yields:
        `GROUP_SIZE` texts: a sentence, its alteration, its neighbours.
    """
    # By the distance: of unit vectors the nearest have the largest cosine, and those of a teacher
    # that are kept as float16 are not quite. Each finds itself or its equal first.
    halves = np.sum(vectors.astype(np.float64) ** 2, axis=1, keepdims=True) / 2
    queries, corpus = np.hstack([vectors, np.ones_like(halves)]), np.hstack([vectors, -halves])
    _, rows = exact_search(queries, corpus, k=NEIGHBOURS + 1)
    for row, near in enumerate(rows):
        others = [other for other in near if other != row][:NEIGHBOURS]
        yield [*pairs[row], *(pairs[other][0] for other in others)]
