"""A Sentence-T5 as a SavedModel: strings in, vectors out, tokenizer and pooling inside."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import use_st5
from use_st5.export.loading import saved_model_graph
from use_st5.models.family import family_of
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.trainable_encoder import TrainableEncoder

TEXTS = ["How old are you?", "", "What is your age? " * 50, "😀", "naïve café"]


@pytest.fixture(scope="module")
def exported(toy_t5: Any) -> tuple[Path, np.ndarray]:
    """The folder of a tiny model, and the vectors of that model for the texts."""
    ids = toy_t5.tokenizer.padded(tf.constant(TEXTS), 128)
    return toy_t5.folder, np.asarray(toy_t5.model(ids))


def test_strings_in_vectors_out(exported: tuple[Path, np.ndarray]) -> None:
    folder, expected = exported
    encoder = use_st5.load(folder)
    assert (encoder.dimension, encoder.max_length) == (24, 128)
    with pytest.warns(UserWarning, match="1 of 5 texts is longer than 128 tokens"):
        np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert encoder.truncated(TEXTS).tolist() == [2]
    vectors = encoder.encode(TEXTS, batch_size=1, on_truncation="ignore")
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_preprocessor_and_encoder_apart(exported: tuple[Path, np.ndarray]) -> None:
    folder, expected = exported
    loaded = tf.saved_model.load(str(folder))
    ids = loaded.preprocess(tf.constant(TEXTS))
    assert ids.shape[1] == 128
    np.testing.assert_allclose(loaded.encode_ids(ids), expected, atol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.encode_ids(ids, training=True)[:, 0])
    counts = loaded.token_counts(TEXTS).numpy()
    np.testing.assert_array_equal(counts.clip(max=128), np.count_nonzero(ids, axis=1))
    assert counts[2] > 250
    gradients = tape.gradient(loss, loaded.trainable_variables)
    assert all(gradient is not None for gradient in gradients)
    ops = {op.type for op in loaded.signatures["ids"].graph.get_operations()}
    assert not any("String" in op or "Sentencepiece" in op for op in ops)


@pytest.mark.end_to_end
@pytest.mark.process
def test_without_tensorflow_text_one_line_says_what_to_install(
    exported: tuple[Path, np.ndarray], fresh_python: Callable[..., str]
) -> None:
    code = (
        "import sys; sys.modules['tensorflow_text'] = None\n"
        "import use_st5\n"
        f"try: use_st5.load({str(exported[0])!r})\n"
        "except ImportError as error: print(error)\n"
    )
    message = fresh_python("-c", code)
    assert 'pip install "tensorflow-text==' in message
    assert message.count("\n") == 1


def test_int8_matrices(toy_t5: Any, tmp_path: Path) -> None:
    """Matrices rounded by hand give the vectors of the int8 export, and of its float32 export."""
    folder = tmp_path / "int8"
    model, tokenizer = toy_t5.model, toy_t5.tokenizer
    TrainableEncoder(model, tokenizer, name="tiny", max_length=128).export(folder, precision="int8")
    rounded = SentenceT5.from_config(model.get_config())
    rounded.build()
    rounded.set_weights(model.get_weights())
    layers = family_of(rounded).lora_layers(rounded).values()
    for matrix, axis in (
        (rounded.embedding.embeddings, 1),
        *((layer.kernel, 0) for layer in (*layers, rounded.projection)),
    ):
        scales = np.abs(matrix.numpy()).max(axis=axis, keepdims=True) / 127
        matrix.assign(np.rint(matrix.numpy() / scales) * scales)
    expected = rounded(tokenizer.padded(tf.constant(TEXTS), 128))
    loaded = tf.saved_model.load(str(folder))
    np.testing.assert_allclose(loaded(tf.constant(TEXTS)), expected, atol=1e-5)
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    TrainableEncoder.load(folder).export(tmp_path / "float32")
    again = use_st5.load(tmp_path / "float32")
    np.testing.assert_allclose(again.encode(TEXTS, on_truncation="ignore"), expected, atol=1e-5)


def test_int8_is_not_for_a_decoder(tmp_path: Path, toy_t5: Any) -> None:
    config = {**toy_t5.model.get_config(), "pooling": "decoder"}
    model = SentenceT5.from_config(config)
    model.build()
    with pytest.raises(ValueError, match="exported in float32, not in int8"):
        TrainableEncoder(model, toy_t5.tokenizer, name="x").export(tmp_path / "m", precision="int8")
    assert not list(tmp_path.iterdir())


def test_the_network_is_held_once(tmp_path: Path, toy_t5: Any) -> None:
    """Two functions, with and without dropout, and two signatures call the same network."""
    config = dataclasses.replace(toy_t5.model.config, dropout=0.0)
    model = SentenceT5(config, projection_dim=24)
    model.build()
    TrainableEncoder(model, toy_t5.tokenizer).export(tmp_path / "model")
    library = saved_model_graph(tmp_path / "model").meta_graphs[0].graph_def.library.function
    products = sum(node.op == "MatMul" for each in library for node in each.node_def)
    # A block of seven dense layers, and the projection.
    assert products == 8
    dropping = saved_model_graph(toy_t5.folder).meta_graphs[0].graph_def.library.function
    assert sum(node.op == "MatMul" for each in dropping for node in each.node_def) == 16
