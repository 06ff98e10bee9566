"""The contract of text stages, held by each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.models.toy_family import TrigramVectorizer
from use_st5.text.byte_level_words import byte_letters
from use_st5.text.byte_pair_vectorizer import BytePairVectorizer
from use_st5.text.ngram_vectorizer import NGramVectorizer
from use_st5.text.ngram_vocabulary import NGramVocabulary
from use_st5.text.piece_vectorizer import PieceVectorizer
from use_st5.text.token_vectorizer import UnigramVectorizer
from use_st5.text.vectorizer import Vectorizer

WORDS = ("the", "cat", "sat", "on", "mat", "##s", "##at", "c", "un")
TEXTS = ["The cat sat on the mat.", "", "cats unsat 😀", "  \t", "don't", b"caf\xe9", "ΣΑΣ, 今日は"]


def _sentencepieces() -> Vectorizer:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer

    return SentencePieceVectorizer()


def _wordpieces() -> Vectorizer:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    from use_st5.text.wordpiece_vectorizer import WordPieceVectorizer

    return WordPieceVectorizer(("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, ".", "'", "don"))


def _byte_pairs() -> Vectorizer:
    special = ("<s>", "<pad>", "</s>", "<unk>")
    merges = (("t", "h"), ("th", "e"), ("Ġ", "c"), ("a", "t"), ("Ġc", "at"))
    pieces = (*special, *byte_letters(), *map("".join, merges))
    return BytePairVectorizer({piece: number for number, piece in enumerate(pieces)}, merges)


MAKERS: dict[str, Callable[[], Vectorizer]] = {
    "ngrams": lambda: NGramVectorizer(
        NGramVocabulary(WORDS, ("the cat",), unigram_buckets=3, bigram_buckets=2)
    ),
    "unigrams": lambda: UnigramVectorizer(NGramVocabulary(WORDS, unigram_buckets=3)),
    "pieces": lambda: PieceVectorizer(NGramVocabulary(WORDS, unigram_buckets=3)),
    "sentencepieces": _sentencepieces,
    "wordpiece": _wordpieces,
    "byte_pair": _byte_pairs,
    "trigrams": TrigramVectorizer,
}


@pytest.fixture(scope="module", params=MAKERS)
def vectorizer(request: pytest.FixtureRequest) -> Vectorizer:
    made = MAKERS[request.param]()
    assert isinstance(made, Vectorizer)
    assert made.kind == request.param
    return made


def test_ids_are_padded_with_zeros_at_the_end(vectorizer: Vectorizer) -> None:
    ids = vectorizer.padded(tf.constant(TEXTS)).numpy()
    assert ids.dtype == np.int32
    assert ids.max() < vectorizer.vocabulary.size
    lengths = np.count_nonzero(ids, axis=1)
    for row, length in zip(ids, lengths, strict=True):
        assert (row[:length] > 0).all()
        assert not row[length:].any()


def test_each_text_has_an_id(vectorizer: Vectorizer) -> None:
    ids = vectorizer.padded(tf.constant(["", " ", "a"])).numpy()
    assert (np.count_nonzero(ids, axis=1) > 0).all()
    assert (vectorizer.token_counts(tf.constant(TEXTS)).numpy() > 0).all()


def test_no_text_gives_no_row(vectorizer: Vectorizer) -> None:
    nothing = tf.constant([], tf.string)
    assert vectorizer.padded(nothing).shape[0] == 0
    assert vectorizer.token_counts(nothing).shape == (0,)


def test_neighbours_and_order_change_nothing(vectorizer: Vectorizer) -> None:
    together = vectorizer.padded(tf.constant(TEXTS)).numpy()
    turned = vectorizer.padded(tf.constant(TEXTS[::-1])).numpy()[::-1]
    np.testing.assert_array_equal(turned, together)
    for text, row in zip(TEXTS, together, strict=True):
        alone = vectorizer.padded(tf.constant([text])).numpy()[0]
        np.testing.assert_array_equal(alone[alone > 0], row[row > 0])


def test_cut_texts_are_beginnings(vectorizer: Vectorizer) -> None:
    whole = vectorizer.padded(tf.constant(TEXTS)).numpy()
    cut = vectorizer.padded(tf.constant(TEXTS), 3).numpy()
    for short, long in zip(cut, whole, strict=True):
        kept = short[short > 0]
        # These end each text, a cut one too.
        end = -1 if vectorizer.kind in ("sentencepieces", "wordpiece", "byte_pair") else None
        np.testing.assert_array_equal(kept[:end], long[: len(kept)][:end])
    tokens = vectorizer.token_ids(tf.constant(TEXTS), 3).numpy()
    assert tokens.shape == (len(TEXTS), 3)
    assert tokens.dtype == np.int32


def test_rebuilt_from_the_assets_of_a_saved_model(vectorizer: Vectorizer, tmp_path: Path) -> None:
    root = tf.train.Checkpoint(vectorizer=vectorizer)
    tf.saved_model.save(root, str(tmp_path / "model"))
    moved = (tmp_path / "model").rename(tmp_path / "moved")
    again = type(vectorizer).from_assets(moved / "assets")
    assert again.vocabulary == vectorizer.vocabulary
    for ids in (Vectorizer.padded, Vectorizer.token_counts):
        name = ids.__name__
        np.testing.assert_array_equal(
            getattr(again, name)(tf.constant(TEXTS)), getattr(vectorizer, name)(tf.constant(TEXTS))
        )


def test_invalid_utf_8_is_read_as_replacement_characters(vectorizer: Vectorizer) -> None:
    broken = [b"caf\xe9 the", b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80 cat"]
    cleaned = [text.decode("utf-8", "replace") for text in broken]
    np.testing.assert_array_equal(
        vectorizer.padded(tf.constant(broken)), vectorizer.padded(tf.constant(cleaned))
    )
