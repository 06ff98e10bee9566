from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.token_tokenizer import UnigramTokenizer
from use_st5.trainable_encoder import TrainableEncoder

TINY = USETransformerConfig(40, 6, 2, 8, 12, 2, dimension=5)
EARLY = dataclasses.replace(TINY, early_output=1)


@pytest.fixture(params=[TINY, EARLY], ids=["last_block", "early_too"])
def model(request: pytest.FixtureRequest) -> USETransformer:
    model = USETransformer(request.param)
    model.build()
    return model


def ids(*lengths: int, width: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = np.zeros((len(lengths), width or max(lengths)), np.int32)
    for row, length in enumerate(lengths):
        rows[row, :length] = rng.integers(1, 40, length)
    return rows


def test_the_published_number_of_parameters() -> None:
    # Only 100 rows are built, to save memory; the other rows are added by their number.
    model = USETransformer.from_preset("use_transformer_large", num_embeddings=100)
    model.build()
    assert model.count_params() + (400_900 - 100) * 320 == 147_354_880
    assert (model.dimension, model.config.max_length) == (512, 128)


def test_the_shape_that_ships_stores_in_40_megabytes() -> None:
    model = USETransformer.from_preset("use_transformer_en", num_embeddings=100)
    model.build()
    # In int8: one byte for each number, and a scale of four bytes for each row of the table.
    table, rest = 53_002 * (384 + 4), model.count_params() - 100 * 384
    assert (model.dimension, model.config.max_length) == (512, 128)
    assert 27e6 < table + rest < 30e6  # vocabulary and graph take about two more


def test_sum_over_positions_divided_by_the_root_of_the_length(model: USETransformer) -> None:
    """With blocks that add nothing, the model is a norm, a sum and a projection."""
    for block in model.blocks:
        block.attention.output_dense.kernel.assign(np.zeros((8, 8)))
        block.outer.kernel.assign(np.zeros((12, 8)))
    row = ids(3)
    x = np.asarray(model.embedding(row))[0] @ np.asarray(model.widen.kernel)
    rates = 10_000.0 ** (-np.arange(4) / 3)
    angles = np.arange(3)[:, None] * rates
    x = x + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6)
    summed = x.sum(0) / np.sqrt(3)
    if model.config.early_output:
        summed = np.concatenate([summed, summed])  # The blocks between them add nothing.
    vector = summed @ np.asarray(model.projection.kernel)
    np.testing.assert_allclose(model(row)[0], vector / np.linalg.norm(vector), atol=1e-5)


def test_the_early_sum_is_of_its_block_alone() -> None:
    """If the projection reads nothing else, the last block has no effect."""
    model = USETransformer(EARLY)
    model.build()
    kernel = np.asarray(model.projection.kernel).copy()
    kernel[8:] = 0.0
    model.projection.kernel.assign(kernel)
    before = np.asarray(model(ids(4, 7)))
    model.blocks[1].outer.kernel.assign(np.ones((12, 8)))
    np.testing.assert_array_equal(model(ids(4, 7)), before)
    model.blocks[0].outer.kernel.assign(np.eye(12, 8))
    assert np.abs(np.asarray(model(ids(4, 7))) - before).max() > 1e-3


def test_vectors_fill_more_dimensions_with_an_early_sum() -> None:
    """Of 16: a normed sum of width 8 spans 7, since its mean is 0, and two of them span 14."""
    wide = {
        early: dataclasses.replace(TINY, dimension=16, early_output=early) for early in (None, 1)
    }
    ranks = {}
    for early, config in wide.items():
        model = USETransformer(config)
        model.build()
        ranks[early] = np.linalg.matrix_rank(model(ids(*range(1, 41))), tol=1e-4)
    assert ranks == {None: 7, 1: 14}


def test_padding_batch_and_order_do_not_change_a_vector(model: USETransformer) -> None:
    rows = ids(3, 17, 1)
    vectors = np.asarray(model(rows))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(model(ids(3, 17, 1, width=64)), vectors, atol=1e-5)
    np.testing.assert_allclose(model(rows[::-1]), vectors[::-1], atol=1e-5)
    np.testing.assert_allclose(model(rows[:1, :3]), vectors[:1], atol=1e-5)


def test_word_order_matters(model: USETransformer) -> None:
    row = ids(6)
    assert np.abs(np.asarray(model(row)) - np.asarray(model(row[:, ::-1]))).max() > 1e-3


def test_every_weight_learns_also_under_xla(model: USETransformer) -> None:
    rows = tf.constant(ids(5, 9))

    @tf.function(jit_compile=True)
    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(rows, training=True)[:, 0])
        found = tape.gradient(loss, [v.value for v in model.trainable_variables])
        return [tf.convert_to_tensor(gradient) for gradient in found]

    for variable, gradient in zip(model.trainable_variables, gradients(), strict=True):
        assert np.isfinite(gradient).all(), variable.path
        assert np.abs(gradient).max() > 0, variable.path


def test_saved_and_loaded(model: USETransformer, tmp_path: Path) -> None:
    rows = ids(5, 9)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(rows), model(rows))
    assert again.config == model.config


def test_exported_it_takes_strings_and_says_its_limit(tmp_path: Path) -> None:
    vocabulary = NGramVocabulary(tuple("abcdefgh"), unigram_buckets=3)
    config = USETransformerConfig(vocabulary.size, 6, 1, 8, 12, 2, dimension=8, max_length=4)
    model, tokenizer = USETransformer(config), UnigramTokenizer(vocabulary)
    model.build()
    TrainableEncoder(model, tokenizer, name="tiny").export(tmp_path / "use")
    encoder = use_st5.load(tmp_path / "use")
    assert encoder.max_length == 4
    texts = ["a b c", "", "a b c d e", "a b c d x", "unknown words"]
    vectors = encoder.encode(texts, on_truncation="ignore")
    np.testing.assert_allclose(vectors, model(tokenizer.padded(tf.constant(texts), 4)), atol=1e-5)
    np.testing.assert_allclose(vectors[2], vectors[3], atol=1e-6)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_heads: expected a divisor of the width 8"):
        USETransformer(USETransformerConfig(9, 4, 1, 8, 8, 3)).build()
    for block in (0, 2):
        with pytest.raises(ValueError, match=f"early_output.*below the last, 2.*Received: {block}"):
            dataclasses.replace(TINY, early_output=block)
    with pytest.raises(ValueError, match="Unknown preset: 'use_transformer'"):
        USETransformer.from_preset("use_transformer")
    with pytest.raises(ValueError, match="without bi-grams, received 1 bi-grams"):
        UnigramTokenizer(NGramVocabulary(("a", "b"), ("a b",)))
