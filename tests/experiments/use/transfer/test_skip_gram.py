"""Skip-gram vectors of the running text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.use.transfer.skip_gram import DIMENSION, skip_gram_vectors


def test_trains_once_and_reads_again(corpora: Path, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    vectors = skip_gram_vectors(corpora, tmp_path / "out", seed=0)
    assert vectors.dimension == DIMENSION
    assert {"dog", "the", "."} <= set(vectors.words)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["skip_gram.0.bin"]
    again = skip_gram_vectors(tmp_path / "absent", tmp_path / "out", seed=0)
    np.testing.assert_array_equal(again.vectors, vectors.vectors)


def test_each_seed_has_its_own(corpora: Path, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    first, second = (skip_gram_vectors(corpora, tmp_path / "out", seed=seed) for seed in (0, 1))
    word = first.vectors[[*first.words].index("dog")]
    assert np.abs(word - second.vectors[[*second.words].index("dog")]).max() > 1e-3
