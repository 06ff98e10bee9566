"""Text embeddings of TensorFlow Hub's layout are loaded, trained and exported again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from use_st5 import TrainableEncoder
from use_st5.export.loading import load_saved_model
from use_st5.models.saved_model.family import TextSavedModel

TEXTS = ["how old are you", "", "Ünheard-of 😀 words", "a train"]
TEXT = tf.TensorSpec([None], tf.string, name="inputs")


def write_use(folder: Path, *, as_dict: bool = False) -> Path:
    """Writes an encoder of USE's layout on the hub: vocabulary asset, table, dense layer."""
    draw = np.random.default_rng(0)
    (folder.parent / "words.txt").write_text("how\nold\nyou\ntrain\nsix\n")
    places = tf.lookup.TextFileIndex
    rows = tf.lookup.TextFileInitializer(
        str(folder.parent / "words.txt"), tf.string, places.WHOLE_LINE, tf.int64, places.LINE_NUMBER
    )
    root = tf.train.Checkpoint()
    root.words = tf.lookup.StaticVocabularyTable(rows, num_oov_buckets=20)
    root.table = tf.Variable(draw.normal(size=(25, 8)).astype(np.float32), name="Embeddings")
    root.kernel = tf.Variable(draw.normal(size=(8, 6)).astype(np.float32), name="kernel")

    @tf.function(input_signature=[TEXT])
    def call(inputs: tf.Tensor) -> Any:
        words = tf.strings.split(tf.strings.join([inputs, " ."]))
        ids = root.words.lookup(words.flat_values)
        means = tf.math.segment_mean(tf.gather(root.table, ids), words.value_rowids())
        vectors = tf.tanh(means @ root.kernel)
        return {"default": vectors, "words": words.row_lengths()} if as_dict else vectors

    root.__call__ = call
    root.variables = root.trainable_variables = [root.table, root.kernel]
    root.regularization_losses = []
    tf.saved_model.save(root, str(folder))
    return folder


@pytest.fixture(scope="module", params=[False, True], ids=["tensor", "dict"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_use(tmp_path_factory.mktemp("hub") / "use", as_dict=request.param)


def vectors_of(folder: Path) -> np.ndarray:
    found = load_saved_model(folder)(tf.constant(TEXTS))
    return np.asarray(found["default"] if isinstance(found, dict) else found)


def test_its_vectors_and_those_of_its_export(folder: Path, tmp_path: Path) -> None:
    encoder = TrainableEncoder.load(folder)
    assert isinstance(encoder.model, TextSavedModel)
    np.testing.assert_allclose(encoder.encode(TEXTS), vectors_of(folder), atol=1e-6)
    manifest = encoder.export(tmp_path / "model")
    assert (manifest.family, manifest.parameters) == (None, 25 * 8 + 8 * 6)
    exported = use_st5.load(tmp_path / "model")
    np.testing.assert_allclose(exported.encode(TEXTS), vectors_of(folder), atol=1e-6)
    again = TrainableEncoder.load(tmp_path / "model")
    np.testing.assert_allclose(again.encode(TEXTS), vectors_of(folder), atol=1e-6)


def test_it_is_trained_on_a_file(folder: Path, tmp_path: Path) -> None:
    words = ["how", "old", "you", "train", "six"]
    pairs = [(a, b) for a in words for b in words] * 6
    rows = [
        {"anchor": f"{a} {b} {n}", "positive": f"{b} is {a}, {n}"} for n, (a, b) in enumerate(pairs)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    before = TrainableEncoder.load(folder)
    start = [each.numpy() for each in before.model.variables]
    trained = use_st5.train(
        folder, file, to=tmp_path / "tuned", epochs=4, batch_size=16, learning_rate=0.05
    )
    assert trained.after != trained.before
    tuned = TrainableEncoder.load(tmp_path / "tuned")
    changed = [
        not np.allclose(a, b.numpy()) for a, b in zip(start, tuned.model.variables, strict=True)
    ]
    assert all(changed), "the table and the dense layer"
    found = use_st5.load(tmp_path / "tuned").encode(TEXTS)
    np.testing.assert_allclose(found, tuned.encode(TEXTS), atol=1e-6)
    assert not np.allclose(found, vectors_of(folder), atol=1e-3)
    assert vectors_of(folder).shape == (4, 6), "the start is as it was"


def test_what_is_refused(tmp_path: Path) -> None:
    root = tf.train.Checkpoint(weights=tf.Variable([1.0]))
    root.__call__ = tf.function(tf.strings.length, input_signature=[TEXT])
    root.variables = root.trainable_variables = [root.weights]
    tf.saved_model.save(root, str(tmp_path / "lengths"))
    with pytest.raises(ValueError, match="turns strings into vectors"):
        TrainableEncoder.load(tmp_path / "lengths")
    encoder = TrainableEncoder.load(write_use(tmp_path / "use"))
    encoder.max_length = 12
    with pytest.raises(ValueError, match="max_length=12 must be None"):
        encoder.export(tmp_path / "model")
