"""The hints of the teacher."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from use_st5.recipes._hints import Hints
from use_st5.vector_store import VectorStore


def test_what_the_sample_shares_is_taken_away(tmp_path: Path) -> None:
    rows = {"a": [1.0, 4.0], "b": [3.0, 4.0], "c": [9.0, 0.0]}
    vectors = VectorStore.of_teacher(tmp_path)
    vectors.extend(lambda texts: np.array([rows[text] for text in texts]), rows)
    hints = Hints(vectors, sample=["a", "b"])
    np.testing.assert_array_equal([hints[each] for each in rows], [[-1, 0], [1, 0], [7, -4]])
    assert hints["a"].dtype == np.float32
