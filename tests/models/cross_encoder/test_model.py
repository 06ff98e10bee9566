from __future__ import annotations

import keras
import numpy as np
import pytest

from use_st5.models.bert.model import BertConfig, Pooler, SentenceBert
from use_st5.models.cross_encoder.model import CrossEncoderModel

SHAPE = {
    "vocabulary_size": 30, "hidden_dim": 8, "num_layers": 2, "num_heads": 2,
    "intermediate_dim": 16, "max_positions": 12, "separator_id": 3,
}  # fmt: skip
IDS = np.array([[2, 5, 6, 3, 7, 3, 0], [2, 9, 3, 8, 4, 6, 3]], np.int32)


@pytest.fixture(scope="module")
def model() -> CrossEncoderModel:
    keras.utils.set_random_seed(0)
    model = CrossEncoderModel(SentenceBert(BertConfig(**SHAPE), pooling="cls"), dropout=0.5)
    model.build()
    return model


def test_a_layer_of_tanh_and_one_number(model: CrossEncoderModel) -> None:
    vectors = np.asarray(model.encoder(IDS), np.float64)
    kernel, bias = (np.asarray(each) for each in model.hidden.get_weights())
    last, shift = (np.asarray(each) for each in model.logit.get_weights())
    expected = np.tanh(vectors @ kernel + bias) @ last + shift
    np.testing.assert_allclose(model(IDS), expected, atol=1e-6)
    assert model(IDS).shape == (2, 1)
    assert model.compute_output_shape((None, None)) == (None, 1)


def test_its_first_layer_begins_as_the_pooler_of_the_checkpoint() -> None:
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(8, 8)).astype("f"), rng.normal(size=8).astype("f")
    encoder = SentenceBert(BertConfig(**SHAPE), pooling="cls")
    encoder.pooler = Pooler(kernel, bias)
    begun = CrossEncoderModel(encoder)
    begun.build()
    for here, there in zip(begun.hidden.get_weights(), (kernel, bias), strict=True):
        np.testing.assert_array_equal(here, there)
    # The last layer, and without a pooler the first, are drawn as transformers draws them.
    keras.utils.set_random_seed(0)
    wide = CrossEncoderModel(SentenceBert(BertConfig(**SHAPE | {"hidden_dim": 64})))
    wide.build()
    for layer in (wide.hidden, wide.logit):
        assert np.std(layer.kernel) == pytest.approx(0.02, rel=0.2)
        assert not np.any(layer.bias)


def test_the_order_of_a_pair_matters(model: CrossEncoderModel) -> None:
    pair, turned = (np.array([ids], np.int32) for ids in ([2, 5, 3, 7, 3], [2, 7, 3, 5, 3]))
    assert np.abs(np.asarray(model.encoder(pair)) - model.encoder(turned)).max() > 1e-5
    assert float(model(pair)[0, 0]) != float(model(turned)[0, 0])


def test_dropout_acts_in_training_alone(model: CrossEncoderModel) -> None:
    np.testing.assert_array_equal(model(IDS), model(IDS))
    assert np.abs(np.asarray(model(IDS, training=True)) - np.asarray(model(IDS))).max() > 1e-5


def test_its_variables_are_the_encoder_s_and_then_the_head_s(model: CrossEncoderModel) -> None:
    joined = [*model.encoder.variables, *model.head_variables]
    assert [id(each) for each in model.variables] == [id(each) for each in joined]


def test_it_comes_back_from_its_configuration(model: CrossEncoderModel) -> None:
    again = CrossEncoderModel.from_config(model.get_config())
    again.build()
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(IDS), model(IDS))
    assert again.dropout == 0.5
