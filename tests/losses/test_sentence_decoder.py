from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from use_st5.losses.sentence_decoder import SentenceDecoder

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


@pytest.mark.parametrize(("width", "heads"), [(7, 1), (8, 3)])
def test_impossible_widths_are_refused(width: int, heads: int) -> None:
    with pytest.raises(ValueError, match=f"hidden_dim={width}, num_heads={heads}"):
        SentenceDecoder(
            vocabulary_size=9,
            hidden_dim=width,
            num_layers=1,
            num_heads=heads,
            intermediate_dim=8,
        )


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
