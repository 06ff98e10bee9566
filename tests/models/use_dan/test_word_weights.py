"""Words weigh by their rank: by hand, in the right rows, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.models.use_dan.model import USEDAN
from use_st5.models.use_dan.word_weights import weigh_words, word_weights
from use_st5.text.ngram_vocabulary import NGramVocabulary

VOCABULARY = NGramVocabulary(
    unigrams=("the", "dog", "barks"), bigrams=("the dog", "dog barks"), unigram_buckets=2
)


def test_rows_by_hand() -> None:
    # Padding and the empty text; of three words p = 1 / (r ln 3), ln 3 = 1.0986: 0.9102, 0.4551,
    # 0.3034; of two bi-grams 1 / (r ln 2), ln 2 = 0.6931: 1.4427, 0.7213; two buckets.
    expected = [1, 1, 0.1 / 1.0102, 0.1 / 0.5551, 0.1 / 0.4034, 0.1 / 1.5427, 0.1 / 0.8213, 1, 1]
    np.testing.assert_allclose(word_weights(VOCABULARY, a=0.1), expected, rtol=1e-3)


def test_a_single_word_has_no_rank() -> None:
    np.testing.assert_array_equal(word_weights(NGramVocabulary(unigrams=("a",))), np.ones(4))


def test_scales_the_table_alone() -> None:
    model = USEDAN.from_preset("use_dan_en", num_embeddings=VOCABULARY.size, embedding_dim=4)
    model.build()
    table, *network = model.get_weights()
    weigh_words(model, VOCABULARY)
    new_table, *new_network = model.get_weights()
    np.testing.assert_allclose(new_table, table * word_weights(VOCABULARY)[:, None], rtol=1e-6)
    for before, after in zip(network, new_network, strict=True):
        np.testing.assert_array_equal(before, after)


def test_what_does_not_fit_is_refused() -> None:
    model = USEDAN.from_preset("use_dan_en", num_embeddings=5, embedding_dim=4)
    model.build()
    with pytest.raises(ValueError, match="9 ids"):
        weigh_words(model, VOCABULARY)
    with pytest.raises(ValueError, match="above 0, received 0"):
        word_weights(VOCABULARY, a=0)
