"""Sentence-BERT: shapes, vectors, and the head."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.token_vectors import token_vectors
from use_st5.models.bert.model import BERT_PRESETS, BertConfig, ProjectionConfig, SentenceBert
from use_st5.models.bert.names import weight_shapes

# Parameters of the published models (google-research/bert, fairseq, all-MiniLM-L6-v2), with the
# pooler, a square dense layer, and RoBERTa's two further rows in the table of positions.
PUBLISHED = {
    "bert_base_uncased": 109_482_240,
    "bert_base_cased": 108_310_272,
    "bert_large_uncased": 335_141_888,
    "bert_large_cased": 333_579_264,
    "roberta_base": 124_645_632,
    "roberta_large": 355_359_744,
    "minilm_l6": 22_713_216,
}


def count(config: BertConfig) -> int:
    """The number of parameters in the tables and the blocks."""
    return sum(math.prod(shape) for shape in weight_shapes(config, head=False).values())


def test_published_sizes() -> None:
    sizes = {}
    for name, config in BERT_PRESETS.items():
        dim = config.hidden_dim
        unread_rows = 2 if name.startswith("roberta") else 0
        sizes[name] = count(config) + dim * dim + dim + unread_rows * dim
    assert sizes == PUBLISHED


def test_the_count_is_that_of_the_built_model() -> None:
    config = BertConfig(11, 3, 8, 12, 2, max_positions=7, separator_id=3)
    model = SentenceBert(config)
    model.build()
    assert model.count_params() == count(config)
    dense = SentenceBert(config, dense=ProjectionConfig(5), head=True)
    dense.build()
    assert dense.count_params() - model.count_params() == 8 * 5 + 5 + (8 * 8 + 3 * 8) + 11


def test_shapes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="num_heads: expected a divisor of hidden_dim, 8"):
        BertConfig(11, 1, 8, 8, 3)
    with pytest.raises(ValueError, match="Unknown activation: 'swish'"):
        BertConfig(11, 1, 8, 8, 2, activation="swish")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Unknown activation: 'softmax'"):
        ProjectionConfig(3, activation="softmax")  # type: ignore[arg-type]


SEPARATOR = 3
TINY = BertConfig(40, 2, 8, 12, 2, max_positions=16, separator_id=SEPARATOR)


def built(config: BertConfig = TINY, **settings: Any) -> SentenceBert:
    """A tiny model none of whose weights is zero or one."""
    model = SentenceBert(config, **settings)
    model.build()
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(np.asarray(variable) + rng.normal(scale=0.3, size=variable.shape))
    return model


def ids(*lengths: int, width: int | None = None) -> np.ndarray:
    """Single texts: first token 2, last the separator."""
    rng = np.random.default_rng(0)
    rows = np.zeros((len(lengths), width or max(lengths)), np.int32)
    for row, length in enumerate(lengths):
        rows[row, :length] = rng.integers(4, 40, length)
        rows[row, [0, length - 1]] = 2, SEPARATOR
    return rows


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_pooling_of_the_token_vectors(pooling: str) -> None:
    model, rows = built(pooling=pooling), ids(3, 7)
    tokens = np.asarray(token_vectors(model, rows))
    pool = {"mean": lambda x: x.mean(0), "cls": lambda x: x[0], "max": lambda x: x.max(0)}[pooling]
    expected = [pool(tokens[0, :3]), pool(tokens[1])]
    np.testing.assert_allclose(model(rows), expected, atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_padding_batch_and_order_do_not_change_a_vector(pooling: str) -> None:
    model, rows = built(pooling=pooling, normalize=True), ids(3, 9, 2)
    vectors = np.asarray(model(rows))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(model(ids(3, 9, 2, width=16)), vectors, atol=1e-6)
    np.testing.assert_allclose(model(rows[::-1]), vectors[::-1], atol=1e-6)
    np.testing.assert_allclose(model(rows[:1, :3]), vectors[:1], atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_tokens_alone_give_the_same_vectors(pooling: str) -> None:
    """Also for two texts in a row, texts without a token, and texts longer than the positions."""
    model, rows = built(pooling=pooling), ids(3, 20, 7, 2)
    rows[2, 4:7] = 5, 6, SEPARATOR
    rows[3] = 0
    for batch in (rows, rows[3:]):
        padded, packed = (
            np.asarray(model.encode_embedded(model.embedding(batch), batch, packed=packed))
            for packed in (False, True)
        )
        filled = (batch != 0).any(axis=1)
        np.testing.assert_allclose(packed[filled], padded[filled], atol=1e-6)
        assert np.isfinite(packed).all()


def test_what_stands_behind_the_position_table_is_cut() -> None:
    """With the model's own table and with the table kept apart; no index is out of range."""
    model, rows = built(), ids(30)
    np.testing.assert_allclose(model(rows), model(rows[:, :16]), atol=1e-6)
    apart = model.encode_embedded(model.embedding(rows), rows)
    np.testing.assert_allclose(apart, model(rows[:, :16]), atol=1e-6)


def test_tokens_behind_the_first_separator_are_of_the_second_type() -> None:
    model = built()
    pair = np.array([[2, 5, SEPARATOR, 6, 7, SEPARATOR, 0]], np.int32)
    types = np.asarray(model.type_embedding.embeddings)
    np.testing.assert_array_equal(
        np.asarray(model._of_types(pair))[0, :6], types[[0, 0, 0, 1, 1, 1]]
    )
    before = np.asarray(model(pair)), np.asarray(model(pair[:, :3]))
    model.type_embedding.embeddings.assign(types + [[0.0] * 8, [1.0, -1.0] * 4])
    assert np.abs(np.asarray(model(pair)) - before[0]).max() > 1e-3
    np.testing.assert_array_equal(model(pair[:, :3]), before[1])


def test_one_type_of_tokens() -> None:
    for config in (
        dataclasses.replace(TINY, num_token_types=1),
        dataclasses.replace(TINY, separator_id=None),
    ):
        model = built(config)
        np.testing.assert_array_equal(
            model._of_types(ids(4)), np.asarray(model.type_embedding.embeddings)[0]
        )


def test_dense_and_activation_by_hand() -> None:
    plain = built()
    model = SentenceBert(TINY, dense=ProjectionConfig(5, activation="tanh"), normalize=True)
    model.build()
    for target, source in zip(model.weights[:-2], plain.weights, strict=True):
        target.assign(source)
    kernel, bias = np.full((8, 5), 0.25), np.arange(5.0)
    model.projection.kernel.assign(kernel)
    model.projection.bias.assign(bias)
    expected = np.tanh(np.asarray(plain(ids(4))) @ kernel + bias)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model(ids(4)), expected, atol=1e-6)
    assert model.dimension == 5


def test_word_logits_are_of_the_tied_table() -> None:
    """The transform gives row 7 for every text; the logits are its products with all rows."""
    model = built(head=True)
    model.head.norm.gamma.assign(np.zeros(8))
    model.head.norm.beta.assign(np.asarray(model.embedding.embeddings)[7])
    model.head.bias.assign(np.arange(40.0))
    logits = np.asarray(model.word_logits(model(ids(4, 6))))
    table = np.asarray(model.embedding.embeddings)
    np.testing.assert_allclose(logits, [table @ table[7] + np.arange(40.0)] * 2, atol=1e-4)
    assert model.word_logits(token_vectors(model, ids(4, 6))).shape == (2, 6, 40)


def test_every_weight_learns_also_under_xla() -> None:
    """The pooling is the only one whose gradient XLA can spoil; the others are sums."""
    config = dataclasses.replace(TINY, num_layers=1)
    model = built(config, pooling="max", head=True, dense=ProjectionConfig(8))
    rows = tf.constant(np.concatenate([ids(7), [[2, 5, SEPARATOR, 6, 7, 8, SEPARATOR]]]))

    @tf.function(jit_compile=True)
    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model.word_logits(model(rows, training=True))[:, 0])
        found = tape.gradient(loss, [v.value for v in model.trainable_variables])
        return [tf.convert_to_tensor(gradient) for gradient in found]

    for variable, gradient in zip(model.trainable_variables, gradients(), strict=True):
        assert np.isfinite(gradient).all(), variable.path
        # A bias of the keys is added to all scores of a query, which the softmax ignores.
        if not variable.path.endswith("key/bias"):
            assert np.abs(gradient).max() > 0, variable.path


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16", "mixed_float16"])
def test_half_precision_is_near(dtype: str) -> None:
    whole = built(normalize=True, head=True)
    half = SentenceBert(TINY, normalize=True, head=True, dtype=dtype)
    half.build()
    for target, source in zip(half.weights, whole.weights, strict=True):
        target.assign(np.asarray(source))
    vectors = half(ids(4, 9))
    assert vectors.dtype == tf.float32
    np.testing.assert_allclose(vectors, whole(ids(4, 9)), atol=0.03)
    assert half.word_logits(vectors).dtype == tf.float32


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = built(pooling="max", dense=ProjectionConfig(5), normalize=True, head=True)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(ids(4, 6)), model(ids(4, 6)))
    assert again.get_config() == model.get_config()


def test_refusals() -> None:
    with pytest.raises(ValueError, match="Unknown pooling: 'first'"):
        SentenceBert(TINY, pooling="first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Unknown preset: 'bert'"):
        SentenceBert.from_preset("bert")
    with pytest.raises(ValueError, match="build it with head=True"):
        built().word_logits(np.zeros((1, 8), np.float32))
    with pytest.raises(ValueError, match="vectors of 8 dimensions.*received 5"):
        model = built(head=True, dense=ProjectionConfig(5))
        model.word_logits(model(ids(3)))
