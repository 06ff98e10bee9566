from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.models.toy_family import TrigramConfig, TrigramEncoder, TrigramTokenizer
from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.trainable_encoder import TrainableEncoder

IDS = np.array([[5, 17, 9, 0], [8, 1, 0, 0]], np.int32)


def member(seed: int, dimension: int = 8) -> TrigramEncoder:
    keras.utils.set_random_seed(seed)
    model = TrigramEncoder(TrigramConfig(dimension=dimension))
    model.build()
    return model


def test_average_and_concatenation_of_vectors_as_they_are() -> None:
    first, second = member(0), member(1)
    one, other = np.asarray(first(IDS)), np.asarray(second(IDS))
    average = Ensemble([first, second])
    np.testing.assert_allclose(average(IDS), (one + other) / 2, atol=1e-6)
    assert np.abs(np.linalg.norm(average(IDS), axis=1) - 1).max() > 1e-3, "not scaled again"
    concat = Ensemble([first, second], mode="concat")
    assert (average.dimension, concat.dimension) == (8, 16)
    np.testing.assert_allclose(concat(IDS), np.concatenate([one, other], axis=1), atol=1e-6)
    scaled = Ensemble([first, second], mode="concat", normalize=True)
    np.testing.assert_allclose(np.asarray(scaled(IDS)) * 2**0.5, concat(IDS), atol=1e-6)


def test_three_members_of_several_dimensions() -> None:
    model = Ensemble([member(0, 4), member(1, 6), member(2, 8)], mode="concat")
    model.build()
    assert model(IDS).shape == (2, 18)
    assert model.compute_output_shape((None, None)) == (None, 18)
    assert len(model.variables) == 9


def test_it_comes_back_from_its_configuration() -> None:
    model = Ensemble([member(0), member(1)], mode="concat", normalize=True)
    model.build()
    again = Ensemble.from_config(model.get_config())
    again.build()
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(IDS), model(IDS))


def test_refusals() -> None:
    first = member(0)
    with pytest.raises(ValueError, match=r"one dimension to average, received \[8, 4\]"):
        Ensemble([first, member(1, 4)])
    with pytest.raises(ValueError, match="each another model, received 2, of which 1 differ"):
        Ensemble([first, first])
    with pytest.raises(ValueError, match="two or more members"):
        Ensemble([first])
    with pytest.raises(ValueError, match="Unknown mode: 'sum'"):
        Ensemble([first, member(1)], mode="sum")


def test_members_of_unit_vectors_have_the_mean_of_their_cosines() -> None:
    members = [member(0, 8), member(1, 6)]
    model = Ensemble(members, mode="concat", unit_members=True)
    vectors = [np.asarray(each(IDS), np.float64) for each in (*members, model)]
    *apart, both = [(one @ other) / np.linalg.norm(one) / np.linalg.norm(other)
                    for one, other in vectors]  # fmt: skip
    assert both == pytest.approx(np.mean(apart), abs=1e-6)


def test_members_of_one_tokenizer_read_the_same_ids() -> None:
    encoders = [TrainableEncoder(member(seed), TrigramTokenizer()) for seed in (0, 1)]
    model = Ensemble.of_encoders(encoders, mode="concat")
    assert (model.dimension, model.stages) == (16, None)
    assert [part is IDS for part in model.parts(IDS)] == [True, True]


def test_members_of_several_tokenizers_read_a_part_each() -> None:
    words = TrainableEncoder(member(2), NGramTokenizer(NGramVocabulary(("a", "cat"))))
    letters = [TrainableEncoder(member(seed), TrigramTokenizer()) for seed in (0, 1)]
    model = Ensemble.of_encoders([letters[0], words, letters[1]])
    assert model.stages == [0, 1, 0]
    parts = [IDS, IDS[::-1], IDS]
    joined = np.stack([IDS, IDS[::-1]], axis=2).reshape(len(IDS), -1)
    for got, expected in zip(model.parts(joined), parts, strict=True):
        np.testing.assert_array_equal(got, expected)
    expected = np.mean([each(part) for each, part in zip(model.members, parts, strict=True)], 0)
    np.testing.assert_allclose(model(joined), expected, atol=1e-6)
    # Cut behind the last id, wherever that is, as in batches of like lengths.
    np.testing.assert_allclose(model(joined[:, :6]), expected, atol=1e-6)
    np.testing.assert_allclose(model(joined[:1, :5]), expected[:1], atol=1e-6)
    with pytest.raises(ValueError, match=r"stages: expected one for each of 2 members"):
        Ensemble(model.members[:2], stages=[0, 1, 0])
