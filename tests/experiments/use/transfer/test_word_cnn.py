"""The word-level CNN: its arithmetic, padding, and that it sees the order of words."""

from __future__ import annotations

import keras
import numpy as np

from experiments.use.transfer.word_cnn import WordCNN
from experiments.use.transfer.word_embedding import WordEmbedding
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

VOCABULARY = NGramVocabulary(("a", "b", "c", "d"))
IDS = np.array([[2, 3, 4], [5, 0, 0], [0, 0, 0]])


def test_is_the_maximum_of_the_rectified_filters() -> None:
    layer = WordCNN(WordEmbedding(VOCABULARY, dimension=2), filters=3, widths=(1, 2))
    found = np.asarray(layer(IDS))
    assert found.shape == (3, 6) == layer.compute_output_shape((3, None))
    table = layer.embedding.embeddings.numpy()
    one, two = (convolution.kernel.numpy() for convolution in layer.convolutions)
    a, b, c, d = table[2:6]
    nothing = np.zeros(2)
    singles = [x @ one[0] for x in (a, b, c)]
    # The last window reaches one word beyond the end.
    pairs = [x @ two[0] + y @ two[1] for x, y in ((a, b), (b, c), (c, nothing))]
    expected = np.maximum(np.concatenate([np.max(singles, axis=0), np.max(pairs, axis=0)]), 0)
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    alone = np.maximum(np.concatenate([d @ one[0], d @ two[0]]), 0)
    np.testing.assert_allclose(found[1], alone, atol=1e-6)
    np.testing.assert_array_equal(found[2], 0)


def test_padding_counts_for_nothing() -> None:
    layer = WordCNN(WordEmbedding(VOCABULARY), filters=7)
    layer.build()
    for convolution in layer.convolutions:  # so that padding could win if it counted
        convolution.bias.assign(np.linspace(-0.1, 0.1, 7))
    short = layer(IDS)
    padded = layer(np.pad(IDS, [(0, 0), (0, 9)]))
    np.testing.assert_allclose(padded, short, atol=1e-6)


def test_config_round_trip() -> None:
    layer = WordCNN(WordEmbedding(VOCABULARY, dimension=5, trainable=False), filters=7, widths=[2])
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    again.build()
    assert {weight.shape for weight in again.weights} == {(2, 5, 7), (7,), (7, 5)}
    assert len(again.trainable_weights) == 2
