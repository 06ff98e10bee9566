"""Groups of related sentences."""

from __future__ import annotations

import numpy as np

from experiments.bundled_models.related_sentences import (
    GROUP_SIZE,
    altered_sentences,
    related_groups,
)
from use_st5.data.text_hashes import normalized

SENTENCES = [f"{who} {what} {where}" for who in "abcd" for what in "efgh" for where in ("i", "j k")]


def test_lengths_and_number() -> None:
    pairs = altered_sentences(SENTENCES, 3, 3, 10)
    assert len({first for first, _ in pairs}) == 10
    assert all(len(first.split()) == 3 and second != first for first, second in pairs)
    assert pairs == altered_sentences(SENTENCES, 3, 3, 10)
    assert len(altered_sentences(SENTENCES, 3, 3, 1000)) == 16


def test_no_alteration_is_a_held_out_sentence() -> None:
    pairs = altered_sentences(SENTENCES, 3, 3, 16)
    held_out = {normalized(second) for _, second in pairs[:5]}
    kept = altered_sentences(SENTENCES, 3, 3, 16, held_out=held_out)
    assert kept == [pair for pair in pairs if normalized(pair[1]) not in held_out]
    assert len(kept) <= 11


def test_neighbours_are_the_nearest_by_cosine() -> None:
    """Against the matrix of all cosines, sorted."""
    vectors = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [(f"sentence {row}", f"alteration {row}") for row in range(30)]
    cosines = vectors @ vectors.T - 2 * np.eye(30)
    groups = list(related_groups(pairs, vectors))
    assert len(groups) == 30
    for row, group in enumerate(groups):
        nearest = np.argsort(-cosines[row])[: GROUP_SIZE - 2]
        assert group == [*pairs[row], *(f"sentence {other}" for other in nearest)]


def test_equal_vectors_are_neighbours() -> None:
    vectors = np.tile(np.eye(2, dtype=np.float32), (4, 1))
    pairs = [(f"{row}", f"altered {row}") for row in range(8)]
    for row, group in enumerate(related_groups(pairs, vectors)):
        assert len(set(group)) == GROUP_SIZE
        assert all(int(each) % 2 == row % 2 for each in group[2:])
