"""The words of a task: vocabulary, pretrained rows, unknown words, and the config."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.use.transfer.word_embedding import WordEmbedding
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

TEXTS = ["The dog barks.", "The cat", "a dog"]
VECTORS = WordVectors(
    ("Dog", "zebra", "New York", "cat", "okapi"), np.arange(15).reshape(5, 3) / 10
)


def row(layer: WordEmbedding, word: str) -> np.ndarray:
    return np.asarray(layer(layer.ids(tf.constant([word]))))[0, 0]


def test_pretrained_vectors_are_the_rows() -> None:
    layer = WordEmbedding.from_texts(TEXTS, vectors=VECTORS, num_words=7)
    # By falling frequency, then words of the vectors, up to seven; "New York" is no token.
    words = ("dog", "the", ".", "a", "barks", "cat", "zebra")
    assert layer.vocabulary.unigrams == words
    np.testing.assert_allclose(row(layer, "dog"), VECTORS.vectors[0])
    np.testing.assert_allclose(row(layer, "CAT"), VECTORS.vectors[3])
    np.testing.assert_allclose(row(layer, "zebra"), VECTORS.vectors[1])
    # Words that are neither in the texts nor among the seven share one row.
    np.testing.assert_array_equal(row(layer, "okapi"), row(layer, "never"))
    reach = np.sqrt(3 * VECTORS.vectors.var())
    for word in ("the", "barks", "never", ""):
        drawn = row(layer, word)
        assert (np.abs(drawn) <= reach).all()
        assert not (drawn == VECTORS.vectors).all(axis=1).any()


def test_learned_words_are_those_of_the_texts() -> None:
    layer = WordEmbedding.from_texts(TEXTS, num_words=2, dimension=4)
    assert layer.vocabulary.unigrams == ("dog", "the")
    ids = layer.ids(tf.constant(["the dog the", "", "cat"])).numpy()
    np.testing.assert_array_equal(ids, [[3, 2, 3], [1, 0, 0], [4, 0, 0]])
    assert layer(ids).shape == (3, 3, 4)
    assert np.abs(layer.embeddings.numpy()).max() <= 0.25


@pytest.mark.parametrize("trainable", [False, True])
def test_config_holds_the_words_and_not_the_vectors(trainable: bool) -> None:
    layer = WordEmbedding.from_texts(TEXTS, vectors=VECTORS, trainable=trainable)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert again.vocabulary == layer.vocabulary
    assert again.dimension == 3
    again.build()
    assert len(again.trainable_weights) == int(trainable)
    assert "Dog" not in str(layer.get_config())


def test_bigrams_are_refused() -> None:
    with pytest.raises(ValueError, match="bi-grams"):
        WordEmbedding(NGramVocabulary(("a", "b"), bigrams=("a b",)))
