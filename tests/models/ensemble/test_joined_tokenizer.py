from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import use_st5
from tests.models.toy_family import TrigramTokenizer
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.ensemble.ensemble import Ensemble
from use_st5.models.ensemble.joined_tokenizer import JoinedTokenizer, joined_stage
from use_st5.models.use_dan.model import USEDAN, USEDANConfig
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.trainable_encoder import TrainableEncoder

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer  # noqa: E402

WORDS = ("how", "old", "are", "you", "what", "is", "your", "age")
TEXTS = ["How old are you?", "", "What is your age?", "naïve café 😀 " * 9]


@pytest.fixture(scope="module")
def members() -> list[TrainableEncoder]:
    """A USE-DAN and a BERT of 16 positions."""
    keras.utils.set_random_seed(0)
    vocabulary = NGramVocabulary(WORDS, ("how old",), unigram_buckets=4, bigram_buckets=3)
    dan = USEDAN(USEDANConfig(num_embeddings=vocabulary.size, embedding_dim=8, hidden_dims=(12, 8)))
    pieces = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "?"])
    bert = SentenceBert(
        BertConfig(13, 1, 6, 12, 2, max_positions=16, separator_id=pieces.separator)
    )
    return [
        TrainableEncoder(dan, NGramTokenizer(vocabulary)),
        TrainableEncoder(bert, pieces),
    ]


def test_a_row_has_the_ids_of_the_stages_by_turns(members: list[TrainableEncoder]) -> None:
    stage = joined_stage(members)
    assert isinstance(stage, JoinedTokenizer)
    for limit in (None, 5):
        ids = stage.padded(tf.constant(TEXTS), limit).numpy()
        for part, member in zip((ids[:, ::2], ids[:, 1::2]), members, strict=True):
            alone = member.tokenizer.padded(tf.constant(TEXTS), limit).numpy()
            np.testing.assert_array_equal(part[:, : alone.shape[1]], alone)
            assert not part[:, alone.shape[1] :].any()
    assert stage.token_ids(tf.constant(TEXTS), 7).shape == (4, 14)
    counts = [member.tokenizer.token_counts(tf.constant(TEXTS)) for member in members]
    np.testing.assert_array_equal(stage.token_counts(tf.constant(TEXTS)), np.max(counts, axis=0))
    sizes = [member.tokenizer.vocabulary.size for member in members]
    assert stage.vocabulary.size == max(sizes)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_encoder_of_two_tokenizers_is_exported_and_loaded(
    members: list[TrainableEncoder], precision: str, tmp_path: Path
) -> None:
    model = Ensemble.of_encoders(members, mode="concat", unit_members=True)
    encoder = TrainableEncoder(model, joined_stage(members))
    assert encoder.max_length == 16
    short = TEXTS[:3]
    apart = [member.encode(short) for member in members]
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in apart]
    np.testing.assert_allclose(encoder.encode(short), np.hstack(unit), atol=1e-5)
    encoder.export(tmp_path / "both", precision=precision)
    loaded = use_st5.load(tmp_path / "both")
    tolerance = 1e-5 if precision == "float32" else 0.1
    np.testing.assert_allclose(
        loaded.encode(TEXTS, on_truncation="ignore"), encoder.encode(TEXTS), atol=tolerance
    )
    assert loaded.truncated(TEXTS).tolist() == [3]
    again = TrainableEncoder.load(tmp_path / "both")
    assert isinstance(again.tokenizer, JoinedTokenizer)
    np.testing.assert_allclose(
        again.encode(TEXTS), loaded.encode(TEXTS, on_truncation="ignore"), atol=1e-5
    )


def test_stages_that_give_the_same_ids_are_one(members: list[TrainableEncoder]) -> None:
    dan = members[0]
    same = TrainableEncoder(dan.model, NGramTokenizer(dan.tokenizer.vocabulary))
    assert joined_stage([dan, same]) is dan.tokenizer


def test_stages_whose_files_have_one_name_are_refused(members: list[TrainableEncoder]) -> None:
    other = NGramTokenizer(NGramVocabulary(("a", "cat")))
    with pytest.raises(ValueError, match=r"ngrams, ngrams, of which several have vocabulary\.txt"):
        JoinedTokenizer([members[0].tokenizer, other])
    with pytest.raises(ValueError, match="two or more tokenizers"):
        JoinedTokenizer([TrigramTokenizer()])


def test_an_ensemble_of_several_stages_wants_them_all(
    members: list[TrainableEncoder], tmp_path: Path
) -> None:
    model = Ensemble.of_encoders(members, mode="concat")
    with pytest.raises(ValueError, match="the tokenizer that joined_stage gives"):
        TrainableEncoder(model, members[0].tokenizer).export(tmp_path / "wrong")
