"""Cross-encoders: the head, export, and the class that scores pairs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.toy_encoders import Toy
from use_st5.encode.cross_encoder import CrossEncoder
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.family import family_of
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer
from use_st5.trainable_encoder import TrainableEncoder

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


def test_its_first_layer_begins_as_the_pooler_of_the_checkpoint() -> None:
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(8, 8)).astype("f"), rng.normal(size=8).astype("f")
    encoder = SentenceBert(BertConfig(**SHAPE), pooling="cls")
    encoder.pooler = SimpleNamespace(kernel=kernel, bias=bias)
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


from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "man", "plays", "the", "guitar", "##s", "."]
PAIRS = [("a man plays", "the man plays guitars."), ("guitar", ""), ("a " * 40, "the " * 30)]
FIRST, SECOND = (list(each) for each in zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def encoder() -> TrainableEncoder:
    keras.utils.set_random_seed(0)
    tokenizer = WordPieceTokenizer(WORDS)
    config = BertConfig(
        vocabulary_size=len(WORDS),
        hidden_dim=8,
        num_layers=1,
        num_heads=2,
        intermediate_dim=16,
        max_positions=24,
        separator_id=tokenizer.separator,
    )
    model = CrossEncoderModel(SentenceBert(config, pooling="cls"), dropout=0.2)
    return TrainableEncoder(model, tokenizer, name="cross_encoder")


@pytest.fixture(scope="module")
def exported(encoder: TrainableEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cross") / "int8"
    encoder.export(folder, precision="int8")
    return folder


@pytest.fixture(scope="module")
def loaded(exported: Path) -> Any:
    """The folder as TensorFlow alone loads it."""
    return tf.saved_model.load(str(exported))


@pytest.fixture(scope="module")
def cross_encoder(exported: Path) -> CrossEncoder:
    return CrossEncoder.load(exported)


def test_pairs_are_scored_by_the_model(encoder: TrainableEncoder) -> None:
    ids = encoder.tokenizer.padded_pairs(FIRST, SECOND, 24)
    np.testing.assert_allclose(encoder.encode(PAIRS), encoder.model(ids), atol=1e-6)
    np.testing.assert_allclose(
        encoder.encode(PAIRS, batch_size=1), encoder.encode(PAIRS), atol=1e-5
    )


def test_what_is_no_pair_is_refused(encoder: TrainableEncoder) -> None:
    with pytest.raises(TypeError, match="Expected .*strings"):
        encoder.encode("one text")
    with pytest.raises(TypeError, match="received 'text' at index 1"):
        encoder.encode([("a", "b"), "text"])


def test_the_saved_model_takes_two_batches_of_strings(
    encoder: TrainableEncoder, loaded: Any
) -> None:
    logits = np.asarray(loaded(FIRST, SECOND))
    np.testing.assert_allclose(logits, encoder.encode(PAIRS), atol=0.05)
    np.testing.assert_array_equal(loaded(first=FIRST, second=SECOND, training=False), logits)
    assert np.abs(np.asarray(loaded(FIRST, SECOND, training=True)) - logits).max() > 1e-4
    given = loaded.signatures["serving_default"](
        first=tf.constant(FIRST), second=tf.constant(SECOND)
    )
    np.testing.assert_allclose(given["logits"], logits[:, 0], atol=1e-6)
    np.testing.assert_allclose(given["scores"], 1 / (1 + np.exp(-logits[:, 0])), atol=1e-6)
    ids = loaded.preprocess(FIRST, SECOND)
    np.testing.assert_allclose(loaded.encode_ids(ids), logits, atol=1e-6)


def test_it_is_loaded_to_be_trained_again(exported: Path, loaded: Any) -> None:
    again = TrainableEncoder.load(exported)
    np.testing.assert_allclose(again.encode(PAIRS), loaded(FIRST, SECOND), atol=1e-5)
    assert again.model.dropout == 0.2


def test_its_face_scores_the_same(exported: Path, loaded: Any, cross_encoder: CrossEncoder) -> None:
    logits = np.asarray(loaded(FIRST, SECOND))[:, 0]
    np.testing.assert_allclose(cross_encoder.predict(PAIRS, logits=True), logits, atol=1e-5)
    assert cross_encoder.name == exported.name


def test_a_trainable_one_scores_pairs_before_it_is_exported(
    encoder: TrainableEncoder, toy_bert: Toy
) -> None:
    cross_encoder = CrossEncoder.of(encoder)
    np.testing.assert_allclose(
        cross_encoder.predict(PAIRS, logits=True),
        np.asarray(encoder.encode(PAIRS))[:, 0],
        atol=1e-6,
    )
    assert (
        cross_encoder.name,
        cross_encoder.max_length,
        cross_encoder.truncated(PAIRS).tolist(),
    ) == ("cross_encoder", 24, [2])
    with pytest.raises(ValueError, match="found a sentence encoder"):
        CrossEncoder.of(TrainableEncoder(toy_bert.model, toy_bert.tokenizer))


def test_it_says_which_pairs_it_cuts(
    encoder: TrainableEncoder, loaded: Any, cross_encoder: CrossEncoder
) -> None:
    whole = ("a " * 10, "the " * 11)  # With three special tokens: 24 ids.
    pairs = [*PAIRS, whole, ("a " * 11, "the " * 11), ("ü", "a")]
    assert cross_encoder.max_length == 24
    assert cross_encoder.truncated(pairs).tolist() == [2, 4]
    ids = encoder.tokenizer.padded_pairs(*(list(each) for each in zip(*pairs, strict=True)))
    lengths = np.count_nonzero(ids, axis=1)
    counted = loaded.token_counts(*(list(each) for each in zip(*pairs, strict=True)))
    assert counted.numpy().tolist() == [*lengths]
    assert np.flatnonzero(lengths > 24).tolist() == [2, 4]
    assert CrossEncoder(lambda first, second: np.zeros(1), name="x").truncated(pairs).size == 0


def test_a_sentence_encoder_is_what_it_is_not(exported: Path) -> None:
    with pytest.raises(ValueError, match="CrossEncoder.load"):
        use_st5.load(exported)


def test_a_tokenizer_of_single_texts_is_refused(encoder: TrainableEncoder, tmp_path: Path) -> None:
    assert not hasattr(PTBTokenizer, "padded_pairs")
    with pytest.raises(ValueError, match=r"a tokenizer of pairs \(padded_pairs\)"):
        family_of(encoder.model).graph(
            encoder.model, PTBTokenizer(), precision="float32", max_length=None
        )
