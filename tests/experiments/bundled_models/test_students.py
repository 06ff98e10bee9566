"""The start of a student: its vocabulary, its table, the weights of its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from experiments.bundled_models.student import word_table
from experiments.bundled_models.word_vocabulary import read_wordpieces
from experiments.bundled_models.word_weights import (
    Calibration,
    calibrate,
    row_factors,
    weigh_words,
    word_weights,
)
from use_st5.models.use_dan.model import USEDAN
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary


def test_words_are_the_principal_components_up_to_one_factor() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 6)) @ np.diag([5, 4, 3, 2, 1, 0.1])
    table = word_table(vectors, rows=60, dim=3, first=2, seed=0)
    assert table.shape == (60, 3)
    words = table[2:52].astype(float)
    assert np.mean(words**2) == pytest.approx(1.0, abs=1e-5)
    peer = PCA(3).fit_transform(vectors)
    peer /= np.sqrt(np.mean(peer**2))
    np.testing.assert_allclose(np.abs(words), np.abs(peer), atol=1e-5)


def test_words_and_pieces(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[unused1]\n!\n##\nthe\n##s\né\n##é\n[\n", encoding="utf-8")
    assert read_wordpieces(path) == (["!", "the", "["], ["##s"])


VOCABULARY = NGramVocabulary(
    unigrams=("the", "dog", "42", "b2b"), bigrams=("the dog", "dog 42"), unigram_buckets=2
)

CALIBRATION = Calibration(
    frequent=0.5, frequent_count=1, numbers=3.0, bigrams=0.25, unknown=2.0, skip=4.0
)


def test_rows_by_hand() -> None:
    # padding, empty, the, dog, 42, b2b, two bi-grams, two buckets
    expected = [1, 1, 0.5, 1, 3, 3, 0.25, 0.25, 2, 2]
    np.testing.assert_array_equal(row_factors(VOCABULARY, CALIBRATION), expected)
    np.testing.assert_array_equal(row_factors(VOCABULARY, Calibration()), np.ones(10))


def test_scales_table_and_projection_alone() -> None:
    model = USEDAN.from_preset(
        "use_dan_en", num_embeddings=10, embedding_dim=4, hidden_dims=(4, 4, 6, 6)
    )
    model.build()
    table, *network = model.get_weights()
    calibrate(model, VOCABULARY, CALIBRATION)
    new_table, *new_network = model.get_weights()
    np.testing.assert_allclose(new_table, table * row_factors(VOCABULARY, CALIBRATION)[:, None])
    for before, after in zip(network[:-1], new_network[:-1], strict=True):
        np.testing.assert_array_equal(before, after)
    assert network[-1].shape == (4, 6)
    np.testing.assert_allclose(new_network[-1], 4 * network[-1])


WORDS = NGramVocabulary(
    unigrams=("the", "dog", "barks"), bigrams=("the dog", "dog barks"), unigram_buckets=2
)


def test_weights_of_words_by_hand() -> None:
    # Padding and the empty text keep 1. Three words: p = 1 / (r ln 3), ln 3 = 1.0986: 0.9102,
    # 0.4551, 0.3034. Two bi-grams: 1 / (r ln 2), ln 2 = 0.6931: 1.4427, 0.7213. Buckets keep 1.
    expected = [1, 1, 0.1 / 1.0102, 0.1 / 0.5551, 0.1 / 0.4034, 0.1 / 1.5427, 0.1 / 0.8213, 1, 1]
    np.testing.assert_allclose(word_weights(WORDS, a=0.1), expected, rtol=1e-3)


def test_scales_the_table_alone() -> None:
    model = USEDAN.from_preset("use_dan_en", num_embeddings=WORDS.size, embedding_dim=4)
    model.build()
    table, *network = model.get_weights()
    weigh_words(model, WORDS)
    new_table, *new_network = model.get_weights()
    np.testing.assert_allclose(new_table, table * word_weights(WORDS)[:, None], rtol=1e-6)
    for before, after in zip(network, new_network, strict=True):
        np.testing.assert_array_equal(before, after)
