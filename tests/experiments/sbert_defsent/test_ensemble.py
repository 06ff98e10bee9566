from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from experiments.sbert_defsent.ensemble import Ensemble
from tests.models.toy_family import TrigramConfig, TrigramEncoder, TrigramTokenizer
from tests.toy_encoders import Toy
from use_st5.models.family import family_named, family_of
from use_st5.trainable_encoder import TrainableEncoder

IDS = np.array([[5, 17, 9, 0], [8, 1, 0, 0]], np.int32)
TEXTS = ["How old are you?", "", "What is your age?", "naïve café 😀"]
# An int8 model has rounded weights.
TOLERANCE = {"float32": 1e-5, "int8": 0.05}


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


def test_three_members_of_several_dimensions() -> None:
    model = Ensemble([member(0, 4), member(1, 6), member(2, 8)], mode="concat")
    model.build()
    assert model(IDS).shape == (2, 18)
    assert model.compute_output_shape((None, None)) == (None, 18)
    assert len(model.variables) == 9


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_exported_and_loaded_in_every_way(precision: str, tmp_path: Path) -> None:
    """Also with the further settings that version 0.2 wrote."""
    model = Ensemble([member(0), member(1, 6)], mode="concat")
    encoder = TrainableEncoder(model, TrigramTokenizer(), name="two", max_length=30)
    folder = tmp_path / precision
    manifest = encoder.export(folder, precision=precision)
    assert (manifest.family, manifest.precision) == ("ensemble", precision)
    vectors = use_st5.load(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=TOLERANCE[precision])
    loaded = tf.saved_model.load(str(folder))
    np.testing.assert_allclose(loaded.encode_ids(loaded.preprocess(TEXTS)), vectors, atol=1e-5)
    again = TrainableEncoder.load(folder)
    assert family_of(again.model).config(again.model) == manifest.config
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-5)
    older = {**manifest.config, "normalize": False, "unit_members": False, "stages": None}
    assert family_named("ensemble").restore(older).dimension == 14


def test_members_of_another_family(toy_use_dan: Toy, tmp_path: Path) -> None:
    """An ensemble of two USE-DANs gives the mean of their vectors."""
    first = toy_use_dan.model
    second = type(first)(first.config)
    keras.utils.set_random_seed(1)
    model = Ensemble([first, second])
    model.build()
    TrainableEncoder(model, toy_use_dan.tokenizer, name="dans").export(tmp_path / "dans")
    vectors = use_st5.load(tmp_path / "dans").encode(TEXTS)
    ids = toy_use_dan.tokenizer.padded(TEXTS)
    np.testing.assert_allclose(vectors, (first(ids) + second(ids)) / 2, atol=1e-5)


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
