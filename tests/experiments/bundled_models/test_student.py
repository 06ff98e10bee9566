"""A student's initial table holds the principal components of the teacher's word vectors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from experiments.bundled_models.student import word_table


def test_words_are_the_principal_components_up_to_one_factor() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 6)) @ np.diag([5, 4, 3, 2, 1, 0.1])
    table = word_table(vectors, rows=60, dim=3, first=2, seed=0)
    assert table.shape == (60, 3)
    words = table[2:52].astype(float)
    assert np.mean(words**2) == pytest.approx(1.0, abs=1e-5)
    peer = PCA(3).fit_transform(vectors)
    peer /= np.sqrt(np.mean(peer**2))
    np.testing.assert_allclose(np.abs(words), np.abs(peer), atol=1e-5)


def test_rows_without_a_word_are_smaller_and_depend_on_the_seed() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 6))
    first, second, same = (
        word_table(vectors, rows=2000, dim=6, first=2, seed=seed) for seed in (0, 1, 0)
    )
    np.testing.assert_array_equal(first, same)
    np.testing.assert_array_equal(first[2:52], second[2:52])
    assert (first[52:] != second[52:]).all()
    assert np.std(first[52:]) == pytest.approx(1 / 3, rel=0.05)


@pytest.mark.parametrize(("rows", "dim"), [(51, 6), (60, 7)])
def test_a_table_that_does_not_fit(rows: int, dim: int) -> None:
    with pytest.raises(ValueError, match="Expected vectors"):
        word_table(np.ones((50, 6)), rows=rows, dim=dim, first=2, seed=0)
