from __future__ import annotations

import numpy as np
import pytest

from use_st5.evaluation.glue.labelled_texts import LabelledTexts
from use_st5.vector_store import VectorCache


def test_rows_keep_sentences_beside_their_labels() -> None:
    texts = LabelledTexts((["a", "b", "c"], ["d", "e", "f"]), np.array([0, 1, 2]))
    chosen = texts.rows(np.array([2, 0]))
    assert chosen.columns == (["c", "a"], ["f", "d"])
    assert chosen.labels.tolist() == [2, 0]
    assert len(chosen) == 2


def test_columns_and_labels_must_match() -> None:
    with pytest.raises(ValueError, match=r"received 1 labels and columns of \[1, 2\] sentences"):
        LabelledTexts((["a"], ["b", "c"]), np.array([0]))
    with pytest.raises(ValueError, match="at least one"):
        LabelledTexts(([],), np.array([]))


def test_a_sentence_without_text_is_embedded_as_a_full_stop() -> None:
    asked = []

    def encode(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return np.array([[len(sentence)] for sentence in sentences])

    texts = LabelledTexts((["ab", ""], ["", "abc"]), np.array([0, 1]))
    first, second = texts.embedded(VectorCache(encode))
    assert (first.tolist(), second.tolist()) == ([[2], [1]], [[1], [3]])
    assert sorted(asked) == [".", "ab", "abc"]
