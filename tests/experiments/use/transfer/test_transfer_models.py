"""Transfer models: their rows, splits and cells."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from experiments.use.transfer import rows
from experiments.use.transfer.cells import batches, tune
from experiments.use.transfer.model import TransferModel
from experiments.use.transfer.rows import Features, Ingredients, TransferRow, transfer_rows
from experiments.use.transfer.splits import TASKS, TransferSplit, split
from experiments.use.transfer.word_cnn import WordCNN
from experiments.use.transfer.word_dan import WordDAN
from experiments.use.transfer.word_embedding import WordEmbedding
from experiments.use.transfer.word_vectors import WordVectors
from use_st5.data.data_folder import DataFolder
from use_st5.evaluation.labelled_texts import LabelledTexts
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


@pytest.mark.end_to_end
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


ROW = TransferRow("models/mine", None)

ROWS_TEXTS = LabelledTexts((["a", "bb"],), np.array([0, 1]))

SPLIT = TransferSplit(0, ROWS_TEXTS, ROWS_TEXTS, ROWS_TEXTS)


class Encoder:
    """Encodes a text as its length times a weight; the caller must turn off its warnings."""

    identity = "of ones"
    weight = 1.0
    encoded = 0

    def encode(self, texts: list[str], *, on_truncation: str = "warn") -> np.ndarray:
        assert on_truncation == "ignore"
        self.encoded += len(texts)
        return np.array([[len(text) * self.weight] for text in texts], np.float32)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Encoder:
    """The encoder that is loaded from `models/mine`."""
    found = Encoder()
    monkeypatch.setattr(use_st5, "load", lambda name: found, raising=False)
    monkeypatch.setattr(rows, "SavedModelLayer", lambda name: None)
    return found


def no_words() -> WordVectors:
    raise AssertionError("no row here has pretrained word vectors")


def test_an_encoder_that_was_trained_anew_is_asked_anew(encoder: Encoder, tmp_path: Path) -> None:
    def run() -> tuple[list[float], dict[str, str]]:
        ingredients = Ingredients(tmp_path, no_words)
        vectors = ingredients.prepare(ROW, SPLIT).train.inputs["sentence"]
        return vectors[:, 0].tolist(), ingredients.settings(ROW)

    assert run() == run() == ([1.0, 2.0], {"encoder": "of ones"})
    assert encoder.encoded == 2, "the second run reads what the first one kept"
    encoder.identity, encoder.weight = "of threes", 3.0
    assert run() == ([3.0, 6.0], {"encoder": "of threes"})


def test_rows_of_the_paper() -> None:
    rows = transfer_rows(["use_dan_en", "models/mine"])
    assert len(rows) == 14
    assert rows["mine+dan_lrn"] == TransferRow("models/mine", "dan_lrn")
    assert rows["use_dan_en"].words is None
    assert [name for name, row in rows.items() if row.encoder is None] == [
        *("cnn_w2v", "dan_w2v", "cnn_lrn", "dan_lrn")
    ]


def samples(count: int, prefix: str = "text") -> LabelledTexts:
    """Texts, of which every third is of class 1."""
    rows = range(count)
    return LabelledTexts(
        ([f"{prefix} {row}" for row in rows],), np.array([int(row % 3 == 0) for row in rows])
    )


def classes(part: LabelledTexts) -> list[int]:
    return np.bincount(part.labels, minlength=2).tolist()


def test_repeats_without_test_part_are_a_cross_validation() -> None:
    data = {"train": samples(300)}
    splits = [split(data, repeat, seed=0) for repeat in range(10)]
    tested = [text for part in splits for text in part.test.columns[0]]
    for part in splits:
        assert part.dev.columns[0] == splits[0].dev.columns[0]
        every = [*part.train.columns[0], *part.dev.columns[0], *part.test.columns[0]]
        assert sorted(every) == sorted(data["train"].columns[0])
        assert classes(part.dev) == [20, 10]
        assert classes(part.test) == [18, 9]
        assert all(
            part.train.labels[row] == (int(text.split()[1]) % 3 == 0)
            for row, text in enumerate(part.train.columns[0])
        )
    assert sorted([*tested, *splits[0].dev.columns[0]]) == sorted(every)
    assert len({part.number for part in splits}) == 10
    assert split(data, 10, seed=0).test.columns[0] == splits[0].test.columns[0]
    assert split(data, 0, seed=1).dev.columns[0] != splits[0].dev.columns[0]


@pytest.mark.parametrize(
    ("task", "counts"),
    [
        ("trec", (4906, 546, 500)),
        ("sst2_4000", (4000, 872, 1821)),
        ("mr", (8635, 1067, 960)),
        ("subj", (8100, 1000, 900)),
    ],
)
def test_real_tasks(task: str, counts: tuple[int, ...], data_dir: Path) -> None:
    dataset, examples = TASKS[task]
    found = split(dataset.read(DataFolder(data_dir)), 0, seed=0, examples=examples)
    assert tuple(len(part) for part in (found.train, found.dev, found.test)) == counts


CNN = TransferRow(None, "cnn_w2v")


def features(count: int) -> Features:
    """Row i has the vector [i], 1 to 9 words with the id i + 1, and the label i."""
    rows = np.arange(count)
    words = np.where(np.arange(9) <= rows[:, None] % 9, rows[:, None] + 1, 0)
    return Features({"sentence": rows[:, None].astype(np.float32), "words": words}, rows)


@pytest.mark.parametrize("seed", [None, 0])
def test_batches_hold_every_text_once_at_its_length(seed: int | None) -> None:
    dataset = batches(features(150), seed=seed)
    assert dataset.cardinality() == 3
    seen, widths = [], []
    for inputs, labels in dataset.as_numpy_iterator():
        np.testing.assert_array_equal(inputs["sentence"][:, 0], labels)
        np.testing.assert_array_equal(inputs["words"][:, 0], labels + 1)
        lengths = (inputs["words"] > 0).sum(axis=1)
        np.testing.assert_array_equal(lengths, labels % 9 + 1)
        assert inputs["words"].shape[1] == lengths.max()
        widths.append(lengths.max())
        seen += labels.tolist()
    assert sorted(seen) == [*range(150)]
    assert len(set(widths)) > 1, "texts of similar length come together"
    again = [labels.tolist() for _, labels in dataset.as_numpy_iterator()]
    assert (sum(again, []) == seen) == (seed is None), "each epoch has its own order"


@pytest.mark.end_to_end
def test_tuning_takes_the_best_trial() -> None:
    pytest.importorskip("keras_tuner")
    tried: list[dict[str, Any]] = []

    def score(chosen: dict[str, Any]) -> float:
        tried.append(chosen)
        return chosen["dropout"] + chosen["filters"] / 1000

    best = tune(CNN, score, trials=6, seed=0)
    assert len(tried) == 7
    assert best == max(tried, key=lambda chosen: chosen["dropout"] + chosen["filters"] / 1000)
    first_choice = tune(CNN, score, trials=0, seed=0)
    assert len(tried) == 7
    assert first_choice == tried[0]
    assert set(first_choice) == set(best)
    assert tune(CNN, lambda chosen: 0.5, trials=2, seed=0) == first_choice
