"""Transfer models: what learns and what stays, cached features, files."""

from __future__ import annotations

import itertools
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.use.transfer.model import TransferModel
from experiments.use.transfer.word_cnn import WordCNN
from experiments.use.transfer.word_dan import WordDAN
from experiments.use.transfer.word_embedding import WordEmbedding
from use_st5.layers.saved_model_layer import SavedModelLayer

TEXTS = ["a dog barks", "big cats", "", "both of the birds sing"]
LABELS = np.array([0, 1, 0, 1])


def fit(model: keras.Model, features: object, labels: np.ndarray, epochs: int) -> None:
    optimizer = keras.optimizers.Adam(0.02)
    model.compile(optimizer, "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(features, labels, epochs=epochs, verbose=0)


@pytest.mark.parametrize("words", [None, WordCNN, WordDAN])
def test_strings_to_probabilities_and_files(
    words: type | None, letters: str, tmp_path: Path
) -> None:
    network = words and words(WordEmbedding.from_texts(TEXTS, dimension=6))
    sentence = SavedModelLayer(letters)
    model = TransferModel(3, sentence=sentence, words=network, hidden_units=(5,), dropout=0.5)
    found = model(tf.constant(TEXTS)).numpy()
    assert found.shape == (4, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    features = model.features(TEXTS)
    np.testing.assert_allclose(model.head(features), found, atol=1e-6)
    fit(model.head, features, LABELS, 3)
    after = model.predict(tf.constant(TEXTS), verbose=0)
    assert np.abs(after - found).max() > 1e-3, "training the head is training the model"
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras", safe_mode=False)
    np.testing.assert_allclose(again(tf.constant(TEXTS)), after, atol=1e-6)


def test_only_the_cnn_learns_word_order() -> None:
    """Each text comes with its words in two orders: a DAN gets at most half of them right."""
    fillers = ["p", "q", "r", "s"]
    pairs = [*itertools.product(fillers, repeat=2)]
    texts = [f"{a} x y {b}" for a, b in pairs] + [f"{a} y x {b}" for a, b in pairs]
    labels = np.repeat([0, 1], len(pairs))
    accuracy = {}
    for network in (WordCNN, WordDAN):
        keras.utils.set_random_seed(0)
        model = TransferModel(2, words=network(WordEmbedding.from_texts(texts, dimension=8)))
        fit(model.head, model.features(texts), labels, 30)
        classes = model(tf.constant(texts)).numpy().argmax(axis=1)
        accuracy[network] = (classes == labels).mean()
    assert accuracy[WordCNN] == 1.0
    assert accuracy[WordDAN] == 0.5


@pytest.mark.parametrize("trainable", [False, True])
def test_sentence_encoder_is_frozen_or_trained(trainable: bool, letters: str) -> None:
    model = TransferModel(2, sentence=SavedModelLayer(letters, trainable=trainable))
    assert len(model.trainable_weights) == 2 + trainable
    fit(model, tf.constant(TEXTS), LABELS, 2)
    scale = model.sentence.model.variables[0].numpy()
    assert (scale != 1.0).any() == trainable
    if trainable:
        with pytest.raises(ValueError, match="trained along"):
            model.features(TEXTS)


@pytest.mark.parametrize("trainable", [False, True])
def test_word_vectors_are_frozen_or_trained(trainable: bool) -> None:
    embedding = WordEmbedding.from_texts(TEXTS, trainable=trainable)
    model = TransferModel(2, words=WordDAN(embedding))
    before = embedding.embeddings.numpy()
    fit(model, tf.constant(TEXTS), LABELS, 2)
    assert (embedding.embeddings.numpy() != before).any() == trainable


def test_features_keep_the_order_of_texts(letters: str) -> None:
    model = TransferModel(2, sentence=SavedModelLayer(letters))
    texts = ["b" * length for length in (3, 1, 2, 7, 5)]
    found = model.features(iter(texts), batch_size=2)
    np.testing.assert_array_equal(found["sentence"][:, 0], [3, 1, 2, 7, 5])
    assert set(found) == {"sentence"}


def test_unusable_arguments(letters: str) -> None:
    with pytest.raises(ValueError, match="none given"):
        TransferModel(2)
    with pytest.raises(ValueError, match="num_classes"):
        TransferModel(1, sentence=SavedModelLayer(letters))
