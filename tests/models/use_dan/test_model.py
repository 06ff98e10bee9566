"""USE-DAN, and its weights before and after training."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from use_st5.models.use_dan.model import (
    USE_DAN_PRESETS,
    USEDAN,
    Calibration,
    calibrate,
    row_factors,
    weigh_words,
    word_weights,
)
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary

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


VOCABULARY = NGramVocabulary(
    unigrams=("the", "dog", "42", "b2b"), bigrams=("the dog", "dog 42"), unigram_buckets=2
)
CALIBRATION = Calibration(
    frequent=0.5, frequent_count=1, numbers=3.0, bigrams=0.25, unknown=2.0, skip=4.0
)


def test_rows_by_hand() -> None:
    # padding, empty, the, dog, 42, b2b, two bi-grams, two buckets
    expected = [1, 1, 0.5, 1, 3, 3, 0.25, 0.25, 2, 2]
    np.testing.assert_array_equal(row_factors(VOCABULARY, CALIBRATION), expected)
    np.testing.assert_array_equal(row_factors(VOCABULARY, Calibration()), np.ones(10))


def test_scales_table_and_projection_alone() -> None:
    model = USEDAN.from_preset(
        "use_dan_en", num_embeddings=10, embedding_dim=4, hidden_dims=(4, 4, 6, 6)
    )
    model.build()
    table, *network = model.get_weights()
    calibrate(model, VOCABULARY, CALIBRATION)
    new_table, *new_network = model.get_weights()
    np.testing.assert_allclose(new_table, table * row_factors(VOCABULARY, CALIBRATION)[:, None])
    for before, after in zip(network[:-1], new_network[:-1], strict=True):
        np.testing.assert_array_equal(before, after)
    assert network[-1].shape == (4, 6)
    np.testing.assert_allclose(new_network[-1], 4 * network[-1])


@pytest.mark.parametrize(
    "changes", [{"num_embeddings": 11}, {"num_embeddings": 10, "hidden_dims": (4, 4)}]
)
def test_a_model_that_does_not_fit_is_refused(changes: dict) -> None:
    model = USEDAN.from_preset(
        "use_dan_en", **{"embedding_dim": 4, "hidden_dims": (4, 4, 6, 6), **changes}
    )
    model.build()
    with pytest.raises(ValueError, match="10 ids"):
        calibrate(model, VOCABULARY, CALIBRATION)


WORDS = NGramVocabulary(
    unigrams=("the", "dog", "barks"), bigrams=("the dog", "dog barks"), unigram_buckets=2
)


def test_weights_of_words_by_hand() -> None:
    # Padding and the empty text; of three words p = 1 / (r ln 3), ln 3 = 1.0986: 0.9102, 0.4551,
    # 0.3034; of two bi-grams 1 / (r ln 2), ln 2 = 0.6931: 1.4427, 0.7213; two buckets.
    expected = [1, 1, 0.1 / 1.0102, 0.1 / 0.5551, 0.1 / 0.4034, 0.1 / 1.5427, 0.1 / 0.8213, 1, 1]
    np.testing.assert_allclose(word_weights(WORDS, a=0.1), expected, rtol=1e-3)


def test_a_single_word_has_no_rank() -> None:
    np.testing.assert_array_equal(word_weights(NGramVocabulary(unigrams=("a",))), np.ones(4))


def test_scales_the_table_alone() -> None:
    model = USEDAN.from_preset("use_dan_en", num_embeddings=WORDS.size, embedding_dim=4)
    model.build()
    table, *network = model.get_weights()
    weigh_words(model, WORDS)
    new_table, *new_network = model.get_weights()
    np.testing.assert_allclose(new_table, table * word_weights(WORDS)[:, None], rtol=1e-6)
    for before, after in zip(network, new_network, strict=True):
        np.testing.assert_array_equal(before, after)


def test_what_does_not_fit_is_refused() -> None:
    model = USEDAN.from_preset("use_dan_en", num_embeddings=5, embedding_dim=4)
    model.build()
    with pytest.raises(ValueError, match="9 ids"):
        weigh_words(model, WORDS)
    with pytest.raises(ValueError, match="above 0, received 0"):
        word_weights(WORDS, a=0)
