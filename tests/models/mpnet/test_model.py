"""The bias for relative positions, which all blocks of an MPNet share."""

from __future__ import annotations

import dataclasses

import keras
import numpy as np
import pytest

from use_st5.models.mpnet.model import MPNetConfig, SentenceMPNet

# The same three words between start and end, forwards and backwards.
WORDS = np.array([[1, 4, 5, 6, 2], [1, 6, 5, 4, 2]], np.int32)


@pytest.fixture
def model() -> SentenceMPNet:
    keras.utils.set_random_seed(0)
    model = SentenceMPNet(MPNetConfig(8, 2, 8, 12, 2, max_positions=16, relative_buckets=8))
    model.build()
    # The initial weights are so small that all vectors are nearly the same.
    for variable in model.trainable_variables:
        variable.assign(variable * 15 if len(variable.shape) == 2 else variable)
    return model


def test_the_distance_of_two_tokens_counts(model: SentenceMPNet) -> None:
    """Without positions and distances the order of the words would make no difference."""
    model.position_embedding.embeddings.assign(0 * model.position_embedding.embeddings)
    one, two = np.asarray(model(WORDS))
    assert np.abs(one - two).max() > 1e-3
    model.relative_bias.table.assign(0 * model.relative_bias.table)
    one, two = np.asarray(model(WORDS))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_copy_has_the_same_distances(model: SentenceMPNet) -> None:
    copy = model.pooled("mean")
    np.testing.assert_allclose(copy(WORDS), model(WORDS), atol=1e-6)


def test_its_configuration_brings_it_back(model: SentenceMPNet) -> None:
    again = SentenceMPNet.from_config(model.get_config())
    again.build()
    again.set_weights(model.get_weights())
    assert again.config == model.config
    np.testing.assert_allclose(again(WORDS), model(WORDS), atol=1e-6)


def test_the_published_shape() -> None:
    """config.json of microsoft/mpnet-base."""
    config = SentenceMPNet.from_preset("mpnet_base", num_layers=1).config
    assert dataclasses.replace(config, num_layers=12) == MPNetConfig(30_527)
    assert (config.max_positions, config.num_token_types) == (512, 0)
    with pytest.raises(ValueError, match=r"Expected one of \['mpnet_base'\]"):
        SentenceMPNet.from_preset("bert_base_uncased")
