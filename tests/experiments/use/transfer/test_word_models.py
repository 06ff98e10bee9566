"""Word vectors, and the models on them."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from experiments.use.transfer.skip_gram import DIMENSION, skip_gram_vectors
from experiments.use.transfer.word_cnn import WordCNN
from experiments.use.transfer.word_dan import WordDAN
from experiments.use.transfer.word_embedding import WordEmbedding
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

WORDS = ("the", "London", "café", "n't")

VECTORS = np.array([[1, 2, 3], [-0.5, 0.25, 8], [1e-3, 0, -7], [4, 5, 6]], np.float32)


def binary(*, line_feeds: bool) -> bytes:
    rows = zip(WORDS, VECTORS, strict=True)
    end = b"\n" if line_feeds else b""
    packed = (word.encode() + b" " + struct.pack("<3f", *vector) + end for word, vector in rows)
    return b"4 3\n" + b"".join(packed)


def text(*, header: bool, end: str = "\n") -> bytes:
    lines = [f"{w} {' '.join(map(str, v))}" for w, v in zip(WORDS, VECTORS.tolist(), strict=True)]
    return "".join(line + end for line in [*(["4 3"] if header else []), *lines]).encode()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(binary(line_feeds=True), id="word2vec.c binary"),
        pytest.param(binary(line_feeds=False), id="gensim binary"),
        pytest.param(text(header=True), id="word2vec text"),
        pytest.param(text(header=True, end=" \n"), id="word2vec.c text"),
        pytest.param(text(header=False), id="GloVe"),
        pytest.param(text(header=False, end="\r\n"), id="GloVe, Windows"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_layouts(content: bytes, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("vectors.gz" if packed else "vectors")
    path.write_bytes(gzip.compress(content) if packed else content)
    found = WordVectors.load(path)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, VECTORS)
    assert found.vectors.dtype == np.float32
    assert WordVectors.load(path, limit=2).words == WORDS[:2]


def test_words_with_spaces_and_words_twice(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text(", 1 2\n. . . 3 4\nat name@domain.com 5 6\n, 7 8\n")
    found = WordVectors.load(path)
    assert found.words == (",", ". . .", "at name@domain.com")
    np.testing.assert_array_equal(found.vectors, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (text(header=True)[:-6], ":5: expected a word and 3 numbers, received \"n't 4.0"),
        (binary(line_feeds=True)[:-5], "word 4"),
        (text(header=False).replace(b"0.25", b"x"), ":2: expected a word and 3 numbers"),
        (text(header=False).replace(b"0.25", b"nan"), "London"),
        (b"one word a line\nand no numbers\n", ":1: expected a word"),
        (b"4 1000000000000\nthe 1 2 3\n", "vectors: expected up to .* received '4 1000000000000'"),
        (b"4 3\n", "vectors: expected 4 words of 3 binary numbers, found the end"),
        (b"", "found none"),
    ],
)
def test_damaged_files(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        WordVectors.load(path)


TEXTS = ["The dog barks.", "The cat", "a dog"]

WORD_TABLE = WordVectors(
    ("Dog", "zebra", "New York", "cat", "okapi"), np.arange(15).reshape(5, 3) / 10
)


def row(layer: WordEmbedding, word: str) -> np.ndarray:
    return np.asarray(layer(layer.ids(tf.constant([word]))))[0, 0]


def test_pretrained_vectors_are_the_rows() -> None:
    layer = WordEmbedding.from_texts(TEXTS, vectors=WORD_TABLE, num_words=7)
    # By falling frequency, then words of the vectors, up to seven; "New York" is no token.
    words = ("dog", "the", ".", "a", "barks", "cat", "zebra")
    assert layer.vocabulary.unigrams == words
    np.testing.assert_allclose(row(layer, "dog"), WORD_TABLE.vectors[0])
    np.testing.assert_allclose(row(layer, "CAT"), WORD_TABLE.vectors[3])
    np.testing.assert_allclose(row(layer, "zebra"), WORD_TABLE.vectors[1])
    # Words that are neither in the texts nor among the seven share one row.
    np.testing.assert_array_equal(row(layer, "okapi"), row(layer, "never"))
    reach = np.sqrt(3 * WORD_TABLE.vectors.var())
    for word in ("the", "barks", "never", ""):
        drawn = row(layer, word)
        assert (np.abs(drawn) <= reach).all()
        assert not (drawn == WORD_TABLE.vectors).all(axis=1).any()


def test_learned_words_are_those_of_the_texts() -> None:
    layer = WordEmbedding.from_texts(TEXTS, num_words=2, dimension=4)
    assert layer.vocabulary.unigrams == ("dog", "the")
    ids = layer.ids(tf.constant(["the dog the", "", "cat"])).numpy()
    np.testing.assert_array_equal(ids, [[3, 2, 3], [1, 0, 0], [4, 0, 0]])
    assert layer(ids).shape == (3, 3, 4)
    assert np.abs(layer.embeddings.numpy()).max() <= 0.25


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


WORD_DAN_IDS = np.array([[2, 3, 4, 0], [5, 0, 0, 0], [0, 0, 0, 0]])


def test_is_dense_layers_on_the_mean() -> None:
    layer = WordDAN(WordEmbedding(VOCABULARY, dimension=3), hidden_units=(4, 2))
    found = np.asarray(layer(WORD_DAN_IDS))
    assert found.shape == (3, 2) == layer.compute_output_shape((3, None))
    table = layer.embedding.embeddings.numpy()
    expected = np.stack([table[2:5].mean(axis=0), table[5], np.zeros(3)])
    for dense in layer.dense:
        expected = np.maximum(expected @ dense.kernel.numpy() + dense.bias.numpy(), 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(layer(WORD_DAN_IDS[:, ::-1]), found, atol=1e-6)


def test_trains_once_and_reads_again(corpora: Path, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    vectors = skip_gram_vectors(corpora, tmp_path / "out", seed=0)
    assert vectors.dimension == DIMENSION
    assert {"dog", "the", "."} <= set(vectors.words)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["skip_gram.0.bin"]
    again = skip_gram_vectors(tmp_path / "absent", tmp_path / "out", seed=0)
    np.testing.assert_array_equal(again.vectors, vectors.vectors)
