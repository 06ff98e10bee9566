"""USE-DAN: shapes and vectors."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.toy_encoders import Toy
from use_st5.engines.dan import DANEngine
from use_st5.hub.model_manifest import ModelManifest
from use_st5.models.use_dan.model import USE_DAN_PRESETS, USEDAN

IDS = np.random.default_rng(0).integers(1, 50, size=(9, 12)).astype("int32")


def _toy(**changes: object) -> USEDAN:
    keras.utils.set_random_seed(1)
    shape = {"num_embeddings": 50, "embedding_dim": 8, "hidden_dims": (8, 8, 12, 12)}
    return USEDAN.from_preset("use_dan_en", **{**shape, **changes})


def test_published_parameter_count() -> None:
    # model.summary() of universal-sentence-encoder/4 in public notebooks: 256,797,824.
    # The table takes 1 GB, and more to be drawn: it is counted, not built.
    model, rows = USEDAN.from_preset("use_dan_v4", num_embeddings=1), 30 * 26_667
    model.build()
    assert USE_DAN_PRESETS["use_dan_v4"].num_embeddings == rows
    weights = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    assert weights + (rows - 1) * model.config.embedding_dim == 256_797_824


def test_unit_vectors_of_the_declared_dimension() -> None:
    model = _toy()
    vectors = model(IDS)
    assert vectors.shape == (9, model.dimension) == (9, 12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1.0, atol=1e-6)


@pytest.mark.parametrize("length", [13, 64, 128])
def test_padding_does_not_change_a_vector(length: int) -> None:
    model = _toy()
    padded = np.pad(IDS, ((0, 0), (0, length - IDS.shape[1])))
    np.testing.assert_allclose(model(padded), model(IDS), atol=1e-6)


def test_batch_and_order_do_not_change_a_vector() -> None:
    model = _toy()
    together = model(IDS).numpy()
    apart = np.concatenate([model(row[None]) for row in IDS])
    np.testing.assert_allclose(apart, together, atol=1e-6)
    order = np.random.default_rng(1).permutation(IDS.shape[1])
    np.testing.assert_allclose(model(IDS[:, order]), together, atol=1e-6)


def test_every_weight_gets_a_finite_gradient_under_xla() -> None:
    model = _toy(term_dropout=0.1, dropout=0.1)
    model.build()
    target = tf.constant(np.random.default_rng(2).normal(size=(9, 12)), tf.float32)

    @tf.function(jit_compile=True)
    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(IDS, training=True) * target)
        weights = [v.value for v in model.trainable_variables]
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]

    for variable, gradient in zip(model.trainable_variables, gradients(), strict=True):
        assert np.isfinite(gradient).all(), variable.path
        assert np.abs(gradient).max() > 0, variable.path


def test_keras_file_round_trip(tmp_path: Path) -> None:
    model = _toy(term_dropout=0.1)
    expected = model(IDS)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(IDS), expected)
    assert loaded.config == model.config


def test_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="use_dan_v5.*use_dan_en"):
        USEDAN.from_preset("use_dan_v5")


def test_long_texts_have_the_vectors_of_sums_in_float64(toy_use_dan: Toy) -> None:
    """An exported graph reads short, long, and very long texts, alone and in one batch."""
    folder = toy_use_dan.folders["float32"]
    manifest = ModelManifest.read(folder)
    assert manifest is not None
    texts = ["the cat", "the cat sat on " * 4_000, "how old are you " * 10, "what is a dog " * 300]
    batches = [[text] for text in texts] + [texts, [*texts, "a mat " * 40_000]]
    encoder, engine = tf.saved_model.load(str(folder)), DANEngine(folder, manifest)
    for batch in batches:
        expected = np.concatenate([engine.run([text]) for text in batch])
        np.testing.assert_allclose(encoder(tf.constant(batch)), expected, rtol=0, atol=1e-6)
