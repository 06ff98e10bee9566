"""The mean of a table's rows, by hand."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.models.static_embedding.model import StaticEmbedding

TABLE = np.array([[9, 9], [7, 7], [5, 5], [3, 0], [0, 4]], np.float32)
START, END, A, B = 1, 2, 3, 4
IDS = [[START, A, B, B, END], [START, A, END, 0, 0], [START, END, 0, 0, 0]]


@pytest.mark.parametrize("normalize", [False, True])
def test_special_tokens_and_padding_are_left_out(normalize: bool) -> None:
    model = StaticEmbedding(5, 2, normalize=normalize)
    model.build()
    model.embedding.embeddings.assign(TABLE)
    means = np.array([[1, 8 / 3], [3, 0], [0, 0]])
    lengths = np.array([[np.hypot(1, 8 / 3)], [3], [1]])
    expected = means / lengths if normalize else means
    np.testing.assert_allclose(model(keras.ops.array(IDS)), expected, atol=1e-6)
    # An empty text alone in its batch has two special ids and no token.
    np.testing.assert_array_equal(model(keras.ops.array([[START, END]])), [[0, 0]])


def test_it_is_built_again_from_its_configuration() -> None:
    model = StaticEmbedding(5, 2, normalize=True)
    again = StaticEmbedding.from_config(model.get_config())
    assert (again.num_embeddings, again.dimension, again.normalize) == (5, 2, True)
