"""Sentence-BERT and its relatives MPNet and ModernBERT: shapes, vectors, and the head."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.bert.huggingface_folder import token_vectors
from tests.toy_encoders import Toy
from use_st5.models.bert.model import (
    BERT_PRESETS,
    BertConfig,
    NormConfig,
    ProjectionConfig,
    SentenceBert,
)
from use_st5.models.bert.names import weight_shapes
from use_st5.models.modernbert.model import (
    MODERNBERT_PRESETS,
    ModernBertConfig,
    SentenceModernBert,
)
from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet
from use_st5.trainable_encoder import TrainableEncoder

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
    np.testing.assert_allclose(model(ids(3, 7, width=16)), expected, atol=1e-6)


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
    positions = np.asarray(model.position_embedding.embeddings)[:6]
    found = np.asarray(model._with_positions(np.float32(0), pair))[0, :6]
    np.testing.assert_allclose(found, types[[0, 0, 0, 1, 1, 1]] + positions, atol=1e-6)
    before = np.asarray(model(pair)), np.asarray(model(pair[:, :3]))
    model.type_embedding.embeddings.assign(types + [[0.0] * 8, [1.0, -1.0] * 4])
    assert np.abs(np.asarray(model(pair)) - before[0]).max() > 1e-3
    np.testing.assert_array_equal(model(pair[:, :3]), before[1])


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


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
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


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_heads: expected a divisor"):
        dataclasses.replace(TINY, num_heads=3)
    with pytest.raises(ValueError, match="Unknown pooling: 'first'"):
        SentenceBert(TINY, pooling="first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Unknown preset: 'bert'"):
        SentenceBert.from_preset("bert")
    with pytest.raises(ValueError, match="head=True"):
        built().word_logits(np.zeros((1, 8), np.float32))
    with pytest.raises(ValueError, match="no masked language model's head"):
        SentenceModernBert(MODERNBERT, head=True)


def test_the_configuration_of_a_model_makes_it_again() -> None:
    after = (NormConfig(), ProjectionConfig(5, False, "relu"), NormConfig(1e-3))
    model = built(after=after)
    again = SentenceBert.from_config(model.get_config())
    assert (again.after, again.dense, again.dimension) == (after, None, 5)
    plain = SentenceBert(TINY, dense=ProjectionConfig(6))
    assert "after" not in plain.get_config(), "older versions read it"
    assert plain.dimension == 6


def test_a_saved_model_has_no_head(toy_bert: Toy, tmp_path: Path) -> None:
    model = SentenceBert.from_config({**toy_bert.model.get_config(), "dense": None, "head": True})
    encoder = TrainableEncoder(model, toy_bert.tokenizer)
    manifest = encoder.export(tmp_path / "model", precision="int8")
    # In addition to its codes it has a scale for each row of the table and each output of the
    # other matrices: the position table, and in a block five as wide as the model and one wider.
    config = model.config
    plain = SentenceBert.from_config({**model.get_config(), "head": False})
    plain.build()
    blocks = config.num_layers * (5 * config.hidden_dim + config.intermediate_dim)
    assert manifest.parameters == plain.count_params() + 18 + config.hidden_dim + blocks
    again = TrainableEncoder.load(tmp_path / "model")
    assert again.model.head is None
    texts = ["the cat sat", "how old are you", ""]
    np.testing.assert_allclose(again.encode(texts), encoder.encode(texts), atol=0.05)


def test_a_fresh_one_follows_its_tokenizer(toy_bert: Toy) -> None:
    encoder = TrainableEncoder.fresh(
        "minilm_l6", toy_bert.tokenizer, num_layers=1, pooling="cls", max_positions=32
    )
    config = encoder.model.config
    assert (config.vocabulary_size, config.separator_id) == (18, 3)
    assert (encoder.max_length, encoder.dimension) == (32, BERT_PRESETS["minilm_l6"].hidden_dim)
    assert np.isfinite(encoder.encode(["the cat sat", ""])).all()


# The same three words between start and end, forwards and backwards.
WORDS = np.array([[1, 4, 5, 6, 2], [1, 6, 5, 4, 2]], np.int32)


def test_the_distance_of_two_tokens_counts_in_an_mpnet(toy_mpnet: Toy) -> None:
    """Without positions and distances the order of the words would make no difference."""
    model = toy_mpnet.model.pooled("mean")
    model.position_embedding.embeddings.assign(0 * model.position_embedding.embeddings)
    one, two = np.asarray(model(WORDS))
    assert np.abs(one - two).max() > 1e-3
    copy = model.pooled("mean")
    np.testing.assert_allclose(copy(WORDS), model(WORDS), atol=1e-6)
    model.relative_bias.table.assign(0 * model.relative_bias.table)
    one, two = np.asarray(model(WORDS))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_padding_and_the_first_piece_of_an_mpnet_change_places(toy_mpnet: Toy) -> None:
    tokenizer = toy_mpnet.tokenizer
    assert tokenizer.padding_id == 1
    ids = tokenizer.padded(["the a", ""]).numpy()
    np.testing.assert_array_equal(ids, [[1, 4, 5, 2], [1, 2, 0, 0]])
    pairs = tokenizer.padded_pairs(["the"], ["a"]).numpy()
    np.testing.assert_array_equal(pairs, [[1, 4, 2, 2, 5, 2]])


def test_the_published_shapes_of_the_relatives() -> None:
    """config.json of microsoft/mpnet-base; the ModernBERT paper, section 2.2: 149 and 395 M."""
    config = SentenceMPNet.from_preset("mpnet_base", num_layers=1).config
    assert dataclasses.replace(config, num_layers=12) == MPNetConfig(30_527)
    assert (config.max_positions, config.num_token_types) == (512, 0)
    for name, millions in (("modernbert_base", 149), ("modernbert_large", 395)):
        shape = MODERNBERT_PRESETS[name]
        dim, inner = shape.hidden_dim, shape.intermediate_dim
        block = 4 * dim * dim + 3 * dim * inner
        total = shape.vocabulary_size * dim + shape.num_layers * block
        # The paper's numbers include the masked language model's head.
        assert (total + dim * dim + shape.vocabulary_size) / 1e6 == pytest.approx(millions, abs=1)


MODERNBERT = ModernBertConfig(300, 2, 8, 12, 2, max_positions=32, local_window=4)


@pytest.mark.parametrize(("every", "reach"), [(1, 8), (2, 3), (9, 3)])
def test_a_token_reaches_its_window_in_a_local_block(every: int, reach: int) -> None:
    """It reaches two tokens on either side in the second block; the first attends to all."""
    keras.utils.set_random_seed(0)
    model = SentenceModernBert(dataclasses.replace(MODERNBERT, global_every=every))
    model.build()
    for variable in model.trainable_variables:
        variable.assign(variable * 15 if len(variable.shape) == 2 else variable)
    ids = np.arange(1, 9, dtype=np.int32)[None]
    first, second = model.blocks
    for layer in first.linear_layers.values():
        layer.kernel.assign(0 * layer.kernel)  # the first block changes nothing
    before = np.asarray(token_vectors(model, ids))
    ids[0, 0] = 77
    moved = np.abs(np.asarray(token_vectors(model, ids)) - before).max(axis=-1)[0] > 1e-5
    assert moved.tolist() == [True] * reach + [False] * (8 - reach)
    assert second.attention_norm is not None and first.attention_norm is None
