from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from use_st5.cross_encoder import CrossEncoder
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.cross_encoder.model import CrossEncoderModel
from use_st5.models.ensemble.of_cross_encoders import CrossEncoderEnsemble
from use_st5.models.family import family_of
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer  # noqa: E402

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "man", "plays", "the", "guitar", "."]
PAIRS = [("a man plays", "the man."), ("guitar", ""), ("a " * 20, "the " * 9)]


@pytest.fixture(scope="module")
def judges() -> list[TrainableEncoder]:
    tokenizer = WordPieceTokenizer(WORDS)
    made = []
    for seed in (0, 1):
        keras.utils.set_random_seed(seed)
        config = BertConfig(10, 1, 8, 16, 2, max_positions=24, separator_id=3)
        model = CrossEncoderModel(SentenceBert(config, pooling="cls"))
        model.build()
        model.logit.bias.assign([(4.0, -1.0)[seed]])
        made.append(TrainableEncoder(model, tokenizer))
    return made


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits.astype(np.float64)))


def test_its_score_is_the_mean_of_scores(judges: list[TrainableEncoder], tmp_path: Path) -> None:
    model = CrossEncoderEnsemble([each.model for each in judges])
    assert family_of(model).name == "cross_encoder_ensemble"
    encoder = TrainableEncoder(model, judges[0].tokenizer)
    expected = np.mean([sigmoid(each.encode(PAIRS)[:, 0]) for each in judges], axis=0)
    mean_of_logits = np.mean([each.encode(PAIRS)[:, 0] for each in judges], axis=0)
    assert np.abs(sigmoid(mean_of_logits) - expected).max() > 1e-3, "which is another"
    np.testing.assert_allclose(sigmoid(encoder.encode(PAIRS)[:, 0]), expected, atol=1e-6)
    encoder.export(tmp_path / "both")
    np.testing.assert_allclose(CrossEncoder.load(tmp_path / "both").predict(PAIRS), expected,
                               atol=1e-6)  # fmt: skip
    first, second = (tf.constant(list(each)) for each in zip(*PAIRS, strict=True))
    function = tf.saved_model.load(str(tmp_path / "both")).signatures["serving_default"]
    np.testing.assert_allclose(function(first=first, second=second)["scores"], expected, atol=1e-6)
    again = TrainableEncoder.load(tmp_path / "both")
    assert isinstance(again.model, CrossEncoderEnsemble)
    np.testing.assert_allclose(again.encode(PAIRS), encoder.encode(PAIRS), atol=1e-5)


def test_far_logits_do_not_overflow(judges: list[TrainableEncoder]) -> None:
    model = CrossEncoderEnsemble([each.model for each in judges])
    far = np.array([[[1000.0], [-1000.0]], [[1000.0], [-1000.0]]], np.float32)
    np.testing.assert_allclose(model.combined([*far]), [[1000.0], [-1000.0]], rtol=1e-6)


def test_sentence_encoders_are_refused(judges: list[TrainableEncoder]) -> None:
    with pytest.raises(ValueError, match="cross-encoders of one tokenizer"):
        CrossEncoderEnsemble([each.model.encoder for each in judges])
