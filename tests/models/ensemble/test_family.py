"""An ensemble: exported, loaded in every way, trained, adapted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.models.toy_family import TrigramConfig, TrigramEncoder, TrigramTokenizer
from use_st5.layers.saved_model_layer import SavedModelLayer
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.models.family import family_named, family_of
from use_st5.models.lora import apply_lora
from use_st5.models.use_dan.model import USEDAN, USEDANConfig
from use_st5.tokenizers.long_texts import LONG_BYTES
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.trainable_encoder import TrainableEncoder
from use_st5.training.array_data import ArrayData
from use_st5.training.task import Task
from use_st5.training.tensorflow_loop import TensorFlowLoop

TEXTS = ["How old are you?", "", "What is your age?", "naïve café 😀"]
# An int8 model is of rounded weights.
TOLERANCE = {"float32": 1e-5, "int8": 0.05}


def of_trigrams(*, max_length: int | None = 30, **settings: Any) -> TrainableEncoder:
    """Two toys, of 8 and of 6 dimensions, over one tokenizer."""
    keras.utils.set_random_seed(0)
    members = [TrigramEncoder(TrigramConfig(dimension=dimension)) for dimension in (8, 6)]
    model = Ensemble(members, mode="concat", **settings)
    return TrainableEncoder(model, TrigramTokenizer(), name="two", max_length=max_length)


def of_two_families() -> TrainableEncoder:
    """A USE-DAN and a toy that reads its n-grams."""
    keras.utils.set_random_seed(0)
    words = ("how", "old", "are", "you", "what", "is", "your", "age")
    vocabulary = NGramVocabulary(words, ("how old",), unigram_buckets=4, bigram_buckets=3)
    config = USEDANConfig(num_embeddings=vocabulary.size, embedding_dim=8, hidden_dims=(12, 8))
    members = [USEDAN(config), TrigramEncoder(TrigramConfig(num_embeddings=vocabulary.size))]
    return TrainableEncoder(Ensemble(members), NGramTokenizer(vocabulary), name="two families")


@pytest.mark.parametrize(
    ("make", "precision"),
    [
        (of_trigrams, "float32"),
        (of_two_families, "int8"),
        pytest.param(of_trigrams, "int8", marks=pytest.mark.end_to_end),
        pytest.param(of_two_families, "float32", marks=pytest.mark.end_to_end),
    ],
)
def test_exported_and_loaded_in_every_way(make: Any, precision: str, tmp_path: Path) -> None:
    encoder = make()
    folder = tmp_path / precision
    manifest = encoder.export(folder, precision=precision)
    assert (manifest.family, manifest.precision) == ("ensemble", precision)
    vectors = use_st5.load(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=TOLERANCE[precision])
    loaded = tf.saved_model.load(str(folder))
    np.testing.assert_allclose(loaded.encode_ids(loaded.preprocess(TEXTS)), vectors, atol=1e-5)
    hub = pytest.importorskip("tensorflow_hub", reason="the extra `hub` is not installed")
    np.testing.assert_allclose(hub.load(str(folder))(TEXTS), vectors, atol=1e-6)
    again = TrainableEncoder.load(folder)
    assert family_of(again.model).config(again.model) == manifest.config
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-5)
    again.export(tmp_path / "again", precision=precision)
    second = use_st5.load(tmp_path / "again").encode(TEXTS)
    np.testing.assert_array_equal(second, vectors)


def test_weights_are_stored_once(tmp_path: Path) -> None:
    encoder = of_trigrams()
    manifest = encoder.export(tmp_path / "model")
    assert manifest.parameters == encoder.model.count_params()
    reader = tf.train.load_checkpoint(str(tmp_path / "model" / "variables" / "variables"))
    shapes = reader.get_variable_to_shape_map()
    stored = sum(int(np.prod(shape)) for name, shape in shapes.items() if not name.startswith("_"))
    assert manifest.parameters <= stored < manifest.parameters + 10  # and the counter of saves


def test_texts_of_any_length_keep_the_members_own_way(tmp_path: Path) -> None:
    of_two_families().export(tmp_path / "model")
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    text = "how old are you " * (LONG_BYTES // 10)
    vectors = loaded([text, "your age"])
    np.testing.assert_allclose(
        vectors, loaded.encode_ids(loaded.preprocess([text, "your age"])), atol=1e-4
    )
    assert not hasattr(loaded, "token_counts")


def test_trained_as_a_keras_model_and_as_a_saved_model(tmp_path: Path) -> None:
    encoder = of_trigrams(normalize=True)
    before = encoder.model.get_weights()
    rows = [encoder.tokenizer.token_ids(texts, 12).numpy() for texts in (TEXTS, TEXTS[::-1])]
    data = ArrayData(dict(zip(("anchor", "positive"), rows, strict=True)))
    task = Task("pairs", ContrastiveLoss(temperature=0.1), data, batch_size=4)
    options = {"steps_per_call": 1, "jit_compile": False}
    TensorFlowLoop(encoder, [task], keras.optimizers.Adam(0.05), **options).run(2)
    after = encoder.model.get_weights()
    assert all(np.abs(a - b).max() > 1e-3 for a, b in zip(before, after, strict=True))
    encoder.export(tmp_path / "model", precision="int8")
    with pytest.warns(UserWarning, match="are int8 and stay as they are"):
        layer = SavedModelLayer(tmp_path / "model", trainable=True)
    model = keras.Sequential([keras.Input(shape=(), dtype="string"), layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.05), "mse", jit_compile=False)
    model.fit(tf.constant(TEXTS), np.arange(4.0), epochs=2, verbose=0)
    layer.save(tmp_path / "tuned")
    tuned = use_st5.load(tmp_path / "tuned").encode(TEXTS)
    assert np.abs(tuned - encoder.encode(TEXTS)).max() > 0.05
    np.testing.assert_allclose(
        TrainableEncoder.load(tmp_path / "tuned").encode(TEXTS), tuned, atol=1e-5
    )


def test_adapted() -> None:
    encoder = of_trigrams()
    adapters = apply_lora(encoder.model, rank=2, targets=["dense"], seed=0)
    assert adapters.layers == ("member_0/dense", "member_1/dense")
    for tensor in adapters.tensors.values():
        tensor.assign(tensor + 0.3)
    adapted = encoder.encode(TEXTS)
    adapters.merge()
    np.testing.assert_allclose(encoder.encode(TEXTS), adapted, atol=1e-5)


def test_refusals(tmp_path: Path) -> None:
    family = family_named("ensemble")
    with pytest.raises(ValueError, match="configuration of the family .ensemble."):
        family.restore({"mode": "concat"})
    with pytest.raises(ValueError, match="one of the tokenizers"):
        family.tokenizer_class("letters")
    encoder = of_two_families()
    encoder.max_length = 3
    with pytest.raises(ValueError, match="any length"):
        encoder.export(tmp_path / "model")
    assert not list(tmp_path.iterdir())
