"""The Skip-Thought task, its decoder, and TSDAE, which has the same decoder."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.losses.fixed_encoder import FixedEncoder, log_softmax, one_id
from use_st5.losses.skip_thought_loss import SentenceDecoder, SkipThoughtLoss
from use_st5.losses.tsdae_loss import TSDAELoss
from use_st5.models.static_embedding.model import StaticEmbedding

RNG = np.random.default_rng(4)
TOKENS = np.array([[3, 5, 2, 7], [1, 4, 0, 0]], np.int32)
VECTORS = RNG.standard_normal((2, 5)).astype(np.float32)
DIRECTIONS = np.array([1, 0], np.int32)


@pytest.fixture(scope="module")
def decoder() -> SentenceDecoder:
    layer = SentenceDecoder(
        vocabulary_size=9,
        hidden_dim=6,
        num_layers=2,
        num_heads=2,
        intermediate_dim=7,
    )
    layer.build((None, 5))
    for variable in layer.trainable_variables:  # no zero bias, no gain of one
        variable.assign(RNG.standard_normal(variable.shape) * 0.5)
    return layer


def logits_of(layer: SentenceDecoder, tokens: np.ndarray, **changes: np.ndarray) -> np.ndarray:
    arguments = {"vectors": VECTORS, "directions": DIRECTIONS, **changes}
    return np.asarray(layer(tokens, **arguments))


def test_equals_a_decoder_written_in_numpy(decoder: SentenceDecoder) -> None:
    table = decoder.tokens.numpy().astype(np.float64)
    x = np.zeros((2, 4, 6))
    x[:, 1:] = table[TOKENS[:, :3]] * math.sqrt(6)
    angles = np.arange(4)[:, None] / 10_000.0 ** (np.array([0, 2, 4]) / 6)
    x += np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    x += decoder.directions.numpy()[DIRECTIONS][:, None]
    for block in decoder.blocks:
        x += _attention(block.attention, _norm(block.attention_norm, x))
        x += _dense(block.condition, VECTORS)[:, None]
        inner = _dense(block.expand, _norm(block.feed_forward_norm, x))
        gelu = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x += _dense(block.contract, gelu)
    expected = _norm(decoder.norm, x) @ table.T + decoder.bias.numpy()
    np.testing.assert_allclose(logits_of(decoder, TOKENS), expected, atol=2e-4)


@pytest.mark.parametrize("position", range(4))
def test_a_token_is_seen_by_later_positions_alone(decoder: SentenceDecoder, position: int) -> None:
    changed = TOKENS.copy()
    changed[:, position] = 8
    before, after = logits_of(decoder, TOKENS), logits_of(decoder, changed)
    np.testing.assert_array_equal(before[:, : position + 1], after[:, : position + 1])
    if position < 3:
        assert np.abs(before[:, position + 1 :] - after[:, position + 1 :]).min() > 0


def test_every_position_hears_of_the_vector_and_the_direction(decoder: SentenceDecoder) -> None:
    before = logits_of(decoder, TOKENS)
    for change in ({"vectors": VECTORS + 1}, {"directions": 1 - DIRECTIONS}):
        difference = np.abs(logits_of(decoder, TOKENS, **change) - before)
        assert (difference.max(axis=-1) > 1e-3).all()


def _dense(layer: Any, x: np.ndarray) -> np.ndarray:
    kernel, bias = layer.get_weights()
    return x @ kernel + bias


def _norm(layer: Any, x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + layer.epsilon)
    return layer.gamma.numpy() * centred / deviation + layer.beta.numpy()


def _attention(layer: Any, x: np.ndarray) -> np.ndarray:
    query, key, value = (
        np.einsum("btw,whd->bhtd", x, part.kernel.numpy()) + part.bias.numpy()[None, :, None, :]
        for part in (layer._query_dense, layer._key_dense, layer._value_dense)
    )
    scores = np.einsum("bhtd,bhsd->bhts", query, key) / math.sqrt(query.shape[-1])
    scores[:, :, ~np.tril(np.ones((4, 4), bool))] = -np.inf
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = np.einsum("bhts,bhsd->bhtd", shares / shares.sum(axis=-1, keepdims=True), value)
    out = layer._output_dense
    return np.einsum("bhtd,hdw->btw", mixed, out.kernel.numpy()) + out.bias.numpy()


SIZES = {"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
TABLE = np.random.default_rng(3).standard_normal((3, 4))
BATCH = {
    "sentence": one_id(3),
    "previous": np.array([[0, 0, 0], [2, 3, 0], [4, 0, 0]], np.int32),
    "next": np.array([[5, 6, 7], [1, 0, 0], [0, 0, 0]], np.int32),
}


def test_every_neighbour_weighs_the_same_whatever_its_length() -> None:
    loss = SkipThoughtLoss(vocabulary_size=9, **SIZES)
    value, metrics = loss(FixedEncoder(TABLE), BATCH)
    targets = np.concatenate([BATCH["previous"], BATCH["next"]])
    vectors = np.concatenate([TABLE, TABLE]).astype(np.float32)
    directions = np.array([0, 0, 0, 1, 1, 1], np.int32)
    logits = np.asarray(loss.decoder(targets, vectors=vectors, directions=directions), np.float64)
    logs = np.take_along_axis(log_softmax(logits), targets[..., None], axis=-1)[..., 0]
    right = logits.argmax(axis=-1) == targets
    rows = [(row, int((targets[row] > 0).sum())) for row in range(6)]
    expected = sum(-logs[row, :count].mean() for row, count in rows if count) / 6
    accuracy = sum(right[row, :count].mean() for row, count in rows if count) / 6
    assert float(value) == pytest.approx(expected, abs=1e-5)
    assert float(metrics["accuracy"]) == pytest.approx(accuracy, abs=1e-6)


def test_ids_beyond_the_vocabulary_count_as_unknown() -> None:
    loss = SkipThoughtLoss(vocabulary_size=9, **SIZES)
    values = [
        float(loss(FixedEncoder(TABLE), {**BATCH, "next": np.full((3, 2), i, np.int32)})[0])
        for i in (1, 9, 80_000, 8)
    ]
    assert values[0] == values[1] == values[2] != values[3]


def test_a_text_is_reconstructed_from_a_part_of_its_tokens() -> None:
    ids = np.tile(np.int32([2, *range(10, 30), 3, 0, 0]), (300, 1))
    loss = TSDAELoss(vocabulary_size=28, seed=1, **SIZES)
    damaged = np.asarray(loss._damaged(ids))
    lengths = (damaged > 0).sum(axis=1)
    assert (damaged[:, 0] == 2).all()
    assert (damaged[np.arange(300), lengths - 1] == 3).all()
    assert lengths.mean() == pytest.approx(2 + 0.4 * 20, abs=0.4)
    words = [row[1 : length - 1] for row, length in zip(damaged, lengths, strict=True)]
    assert all((np.diff(row) > 0).all() for row in words)  # In order, without gaps.
    value, _ = loss(FixedEncoder(np.eye(4)), {"sentence": ids})
    logits = loss.decoder(
        np.array([[2, *range(10, 28), 3]], np.int32),  # Without the ids from 28 on.
        vectors=np.eye(4)[2:3].astype(np.float32),
        directions=np.zeros(1, np.int32),
    )
    logs = log_softmax(np.asarray(logits, np.float64))[0]
    expected = -logs[np.arange(20), [2, *range(10, 28), 3]].mean()
    assert float(value) == pytest.approx(expected, abs=1e-5)


def test_a_tied_decoder_has_the_encoder_s_table() -> None:
    encoder = StaticEmbedding(30, 8)
    encoder.build()
    with pytest.raises(ValueError, match="table of width 6, received one of width 8"):
        TSDAELoss(vocabulary_size=30, tied=True, hidden_dim=6).check_encoder(encoder)
    loss = TSDAELoss(vocabulary_size=30, tied=True, **SIZES)
    loss.check_encoder(encoder)
    sizes = []
    for scale in (1.0, 9.0):
        encoder.embedding.embeddings.assign(scale * encoder.embedding.embeddings)
        with tf.GradientTape() as tape:
            value, _ = loss(encoder, {"sentence": one_id(5, start=1)})
        gradient = tape.gradient(value, encoder.embedding.embeddings.value)
        sizes.append(float(value))
        # The decoder reaches words that no text has.
        assert np.abs(tf.convert_to_tensor(gradient)[20:]).max() > 0
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-5)
    assert "tokens" not in {weight.name for weight in loss.decoder.weights}
