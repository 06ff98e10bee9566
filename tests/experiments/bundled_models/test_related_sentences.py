"""Groups of related sentences."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.bundled_models import related_sentences
from experiments.bundled_models.related_sentences import (
    GROUP_SIZE,
    altered_sentences,
    related_rows,
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
    """Compared with the sorted matrix of all cosines; the vectors need not have length 1."""
    vectors = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T - 2 * np.eye(30)
    groups = related_rows(vectors).reshape(30, GROUP_SIZE)
    for row, group in enumerate(groups):
        nearest = np.argsort(-cosines[row])[: GROUP_SIZE - 2]
        np.testing.assert_array_equal(group, [2 * row, 2 * row + 1, *(2 * nearest)])


def test_equal_vectors_are_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related_sentences, "_QUERIES", 3)  # The last part has only 2 rows.
    vectors = np.tile(np.eye(2, dtype=np.float32), (4, 1))
    for row, group in enumerate(related_rows(vectors).reshape(8, GROUP_SIZE)):
        assert len(set(group)) == GROUP_SIZE
        assert all(other % 4 == 2 * (row % 2) for other in group[2:])
