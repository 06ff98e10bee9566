"""USE-DAN and USE Transformer: published sizes, vectors by hand, long texts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from use_st5.engines.dan import DANEngine
from use_st5.hub.model_manifest import ModelManifest
from use_st5.models.use_dan.model import USE_DAN_PRESETS, USEDAN
from use_st5.models.use_transformer.model import USETransformer, USETransformerConfig
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.token_tokenizer import UnigramTokenizer
from use_st5.trainable_encoder import TrainableEncoder

TINY = USETransformerConfig(40, 6, 2, 8, 12, 2, dimension=5)
EARLY = dataclasses.replace(TINY, early_output=1)


def built(config: USETransformerConfig) -> USETransformer:
    keras.utils.set_random_seed(0)
    model = USETransformer(config)
    model.build()
    return model


def ids(*lengths: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = np.zeros((len(lengths), max(lengths)), np.int32)
    for row, length in enumerate(lengths):
        rows[row, :length] = rng.integers(1, 40, length)
    return rows


def test_the_published_numbers_of_parameters() -> None:
    """The tables are counted, not built: they take gigabytes."""
    # model.summary() of universal-sentence-encoder/4 in public notebooks: 256,797,824.
    dan, rows = USEDAN.from_preset("use_dan_v4", num_embeddings=1), 30 * 26_667
    dan.build()
    assert USE_DAN_PRESETS["use_dan_v4"].num_embeddings == rows
    assert dan.count_params() + (rows - 1) * dan.config.embedding_dim == 256_797_824
    large = USETransformer.from_preset("use_transformer_large", num_embeddings=100)
    large.build()
    assert large.count_params() + (400_900 - 100) * 320 == 147_354_880
    ours = USETransformer.from_preset("use_transformer_en", num_embeddings=100)
    ours.build()
    # In int8: one byte for each number, and a scale of four bytes for each row of the table.
    table, rest = 53_002 * (384 + 4), ours.count_params() - 100 * 384
    assert 27e6 < table + rest < 30e6  # vocabulary and graph take about two more
    for model, most in ((large, 128), (ours, 256)):
        assert (model.dimension, model.config.max_length) == (512, most)


@pytest.mark.parametrize("config", [TINY, EARLY], ids=["last_block", "early_too"])
def test_sum_over_positions_divided_by_the_root_of_the_length(
    config: USETransformerConfig,
) -> None:
    """With blocks that add nothing, the model is a norm, a sum and a projection."""
    model, row = built(config), ids(3)
    assert np.abs(np.asarray(model(ids(6))) - np.asarray(model(ids(6)[:, ::-1]))).max() > 1e-3
    for block in model.blocks:
        block.attention.output_dense.kernel.assign(np.zeros((8, 8)))
        block.outer.kernel.assign(np.zeros((12, 8)))
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
    model = built(EARLY)
    kernel = np.asarray(model.projection.kernel).copy()
    kernel[8:] = 0.0
    model.projection.kernel.assign(kernel)
    before = np.asarray(model(ids(4, 7)))
    model.blocks[1].outer.kernel.assign(np.ones((12, 8)))
    np.testing.assert_array_equal(model(ids(4, 7)), before)
    model.blocks[0].outer.kernel.assign(np.eye(12, 8))
    assert np.abs(np.asarray(model(ids(4, 7))) - before).max() > 1e-3


def test_a_transformer_reads_texts_up_to_its_limit(tmp_path: Path) -> None:
    vocabulary = NGramVocabulary(tuple("abcdefgh"), unigram_buckets=3)
    config = USETransformerConfig(vocabulary.size, 6, 1, 8, 12, 2, dimension=8, max_length=4)
    model, tokenizer = built(config), UnigramTokenizer(vocabulary)
    TrainableEncoder(model, tokenizer, name="tiny").export(tmp_path / "use")
    encoder = use_st5.load(tmp_path / "use")
    assert encoder.max_length == 4
    texts = ["a b c", "", "a b c d e", "a b c d x", "unknown words"]
    vectors = encoder.encode(texts, on_truncation="ignore")
    np.testing.assert_allclose(vectors, model(tokenizer.padded(tf.constant(texts), 4)), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(vectors[2], vectors[3], atol=1e-6)


def test_a_dan_s_vectors_of_long_texts_are_those_of_sums_in_float64(toy_use_dan: Toy) -> None:
    """An exported graph reads short, long, and very long texts, alone and in one batch."""
    manifest = ModelManifest.read(toy_use_dan.folder)
    assert manifest is not None
    texts = ["the cat", "the cat sat on " * 4_000, "how old are you " * 10, "what is a dog " * 300]
    batches = [[text] for text in texts] + [texts, [*texts, "a mat " * 40_000]]
    encoder = tf.saved_model.load(str(toy_use_dan.folder))
    engine = DANEngine(toy_use_dan.folder, manifest)
    for batch in batches:
        expected = np.concatenate([engine.run([text]) for text in batch])
        np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(encoder(tf.constant(batch)), expected, rtol=0, atol=1e-6)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="use_dan_v5.*use_dan_en"):
        USEDAN.from_preset("use_dan_v5")
    with pytest.raises(ValueError, match="without bi-grams"):
        UnigramTokenizer(NGramVocabulary(("a", "b"), ("a b",)))
