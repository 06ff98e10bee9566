"""The word-level DAN: its arithmetic, padding and word dropout."""

from __future__ import annotations

import keras
import numpy as np

from experiments.use.transfer.word_dan import WordDAN
from experiments.use.transfer.word_embedding import WordEmbedding
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

VOCABULARY = NGramVocabulary(("a", "b", "c", "d"))
IDS = np.array([[2, 3, 4, 0], [5, 0, 0, 0], [0, 0, 0, 0]])


def test_is_dense_layers_on_the_mean() -> None:
    layer = WordDAN(WordEmbedding(VOCABULARY, dimension=3), hidden_units=(4, 2))
    found = np.asarray(layer(IDS))
    assert found.shape == (3, 2) == layer.compute_output_shape((3, None))
    table = layer.embedding.embeddings.numpy()
    expected = np.stack([table[2:5].mean(axis=0), table[5], np.zeros(3)])
    for dense in layer.dense:
        expected = np.maximum(expected @ dense.kernel.numpy() + dense.bias.numpy(), 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(layer(IDS[:, ::-1]), found, atol=1e-6)


def test_dropped_words_leave_the_mean() -> None:
    keras.utils.set_random_seed(0)
    layer = WordDAN(WordEmbedding(VOCABULARY, dimension=1), hidden_units=(), word_dropout=0.3)
    layer.build()
    layer.embedding.embeddings.assign([[9.0], [9], [1], [2], [3], [4], [9]])
    ids = np.tile([2, 5, 0], (4000, 1))
    np.testing.assert_array_equal(layer(ids), 2.5)
    means, counts = np.unique(layer(ids, training=True), return_counts=True)
    np.testing.assert_array_equal(means, [0, 1, 2.5, 4])  # kept: none, the first, both, the second
    np.testing.assert_allclose(counts / 4000, [0.09, 0.21, 0.49, 0.21], atol=0.03)


def test_config_round_trip() -> None:
    layer = WordDAN(WordEmbedding(VOCABULARY, dimension=5), hidden_units=[3], word_dropout=0.1)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    again.build()
    assert again.word_dropout == 0.1
    assert {weight.shape for weight in again.trainable_weights} == {(7, 5), (5, 3), (3,)}
