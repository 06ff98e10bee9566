"""The layers of a deep averaging network."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.layers.deep_averaging import NGramEmbedding, ResidualFeedForward


def _layer(**options: float) -> NGramEmbedding:
    layer = NGramEmbedding(6, 2, **options)
    layer.build()
    layer.embeddings.assign(np.arange(12, dtype="f").reshape(6, 2))
    return layer


def test_mean_by_hand() -> None:
    # Rows of the table: 0:(0,1) 1:(2,3) 2:(4,5) 3:(6,7) 4:(8,9) 5:(10,11).
    means = _layer()(np.array([[2, 5, 0], [3, 0, 0]], np.int32))
    np.testing.assert_allclose(means, [[7, 8], [6, 7]])


def test_padding_changes_nothing_even_where_row_zero_is_large() -> None:
    layer = _layer()
    table = layer.embeddings.numpy()
    table[0] = np.inf
    layer.embeddings.assign(table)
    short = layer(np.array([[2, 5]], np.int32))
    np.testing.assert_array_equal(layer(np.array([[2, 5] + [0] * 60], np.int32)), short)


def test_term_dropout_keeps_the_mean_of_what_is_left_and_acts_in_training_only() -> None:
    layer = _layer(term_dropout=0.5)
    ids = np.tile(np.array([[2, 5]], np.int32), (4000, 1))
    np.testing.assert_allclose(layer(ids), np.tile([[7.0, 8.0]], (4000, 1)))
    rows, counts = np.unique(layer(ids, training=True), axis=0, return_counts=True)
    np.testing.assert_allclose(rows, [[0, 0], [4, 5], [7, 8], [10, 11]])
    assert (np.abs(counts / 4000 - 0.25) < 0.04).all()


def test_config_round_trip() -> None:
    layer = NGramEmbedding.from_config(_layer(term_dropout=0.25).get_config())
    assert (layer.num_embeddings, layer.embedding_dim, layer.term_dropout) == (6, 2, 0.25)


def test_blocks_by_hand() -> None:
    layer = ResidualFeedForward((3, 3, 4, 5))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("f")
    y = layer(x)
    w = [dense.kernel.numpy() for dense in layer.dense_layers]
    h = np.tanh(np.tanh(x @ w[0]) @ w[1]) + x
    expected = np.tanh(np.tanh(h @ w[2]) @ w[3]) + h @ layer.projections["1"].kernel.numpy()
    np.testing.assert_allclose(y, expected, atol=1e-5)
    assert len(layer.weights) == 5


@pytest.mark.parametrize("hidden_dims", [(), (4,), (4, 4, 4)])
def test_odd_numbers_of_layers_are_refused(hidden_dims: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="an even number"):
        ResidualFeedForward(hidden_dims)
