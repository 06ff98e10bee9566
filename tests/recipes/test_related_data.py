"""The examples of related sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from use_st5.recipes._hints import Hints
from use_st5.recipes._related_data import RelatedData
from use_st5.recipes._related_sentences import GROUP_SIZE, pair_texts
from use_st5.vector_store import VectorStore


def test_groups_with_vectors_and_hints(tmp_path: Path) -> None:
    pairs = {(1, 2): [(f"short {i}", f"altered {i}") for i in range(5)], (3, 4): [("a b c", "a c")]}
    draw = np.random.default_rng(0)
    stores = (
        VectorStore.of_teacher(tmp_path / "vectors"),
        VectorStore.of_teacher(tmp_path / "hints"),
    )
    for store in stores:
        store.extend(lambda texts: draw.normal(size=(len(texts), 3)), pair_texts(pairs))
    vectors, hints = stores[0], Hints(stores[1], sample=pair_texts(pairs))
    examples = list(RelatedData(pairs, vectors, hints).examples((1, 2)))
    assert len(examples) == 5 * GROUP_SIZE
    assert [each["sentence"] for each in examples[:2]] == ["short 0", "altered 0"]
    for each in examples:
        np.testing.assert_array_equal(each["teacher"], vectors[each["sentence"]])
        np.testing.assert_array_equal(each["hint"], hints[each["sentence"]])
