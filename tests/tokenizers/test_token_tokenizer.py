"""Tokenizers of a USE Transformer."""

from __future__ import annotations

import pytest
import tensorflow as tf

from use_st5.tokenizers.ngram_vocabulary import EMPTY_ID, NGramVocabulary
from use_st5.tokenizers.token_tokenizer import PieceTokenizer, UnigramTokenizer


def test_tokens_alone_cut_and_padded() -> None:
    tokenizer = UnigramTokenizer(NGramVocabulary(("the", "cat", "do", "n't"), unigram_buckets=2))
    texts = tf.constant(["The cat", "", "don't zzz the"])
    ids = tokenizer.padded(texts).numpy()
    bucket = int(ids[2, 2])
    assert bucket in (6, 7)
    assert ids.tolist() == [[2, 3, 0, 0], [EMPTY_ID, 0, 0, 0], [4, 5, bucket, 2]]
    assert tokenizer.token_counts(texts).numpy().tolist() == [2, 1, 4]
    for cut in (tokenizer.padded, tokenizer.token_ids):
        assert cut(texts, 2).numpy().tolist() == [[2, 3], [EMPTY_ID, 0], [4, 5]]


WORDS = ("the", "cat", "un", "funny", "cookie", "cutter", "-", "##funny", "##ly", "##l", "26", ",")
TOKENIZER = PieceTokenizer(NGramVocabulary(WORDS, unigram_buckets=3))
BUCKETS = range(2 + len(WORDS), 2 + len(WORDS) + 3)


def terms(text: str, tokenizer: PieceTokenizer = TOKENIZER) -> list[str]:
    """The text's ids as terms of the vocabulary."""
    names = ("<padding>", "<empty>", *tokenizer.vocabulary.unigrams)
    ids = tokenizer.padded(tf.constant([text])).numpy()[0]
    return [names[i] if i < len(names) else "<bucket>" for i in ids]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat", "the cat"),
        ("unfunny", "un ##funny"),
        ("unfunnyly cat", "un ##funny ##ly cat"),
        ("cookie-cutter", "cookie - cutter"),
        ("26,26", "26 , 26"),
        ("cat-unfunnyl", "cat - un ##funny ##l"),
        ("unq the", "un <bucket> the"),
        ("東京", "<bucket>"),
        ("cat é", "cat <bucket>"),
    ],
)
def test_by_hand(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


def test_rows_are_padded_cut_and_counted() -> None:
    texts = tf.constant(["unfunny cat", "", "the", "   "])
    ids = TOKENIZER.padded(texts).numpy()
    assert ids.tolist() == [[4, 9, 3], [EMPTY_ID, 0, 0], [2, 0, 0], [EMPTY_ID, 0, 0]]
    assert TOKENIZER.padded(texts, 2).numpy().tolist() == ids[:, :2].tolist()
    assert TOKENIZER.token_ids(texts, 2).numpy().tolist() == ids[:, :2].tolist()
    assert TOKENIZER.token_ids(texts, 5).shape == (4, 5)
    assert TOKENIZER.token_counts(texts).numpy().tolist() == [3, 1, 1, 1]


def test_nothing_and_long_words() -> None:
    assert TOKENIZER.padded(tf.constant([], tf.string)).shape[0] == 0
    assert terms("un" + "l" * 100_000) == ["un", *["##l"] * 7]
    assert set(terms("q" * 100_000)) == {"<bucket>"}
    assert terms(b"cat \xff\xfe".decode("latin-1"))[0] == "cat"
    invalid = TOKENIZER.padded(tf.constant([b"cat \xff\xfeun"])).numpy()
    assert invalid[0, 0] == 3


def test_pieces_are_those_of_a_wordpiece_tokenizer() -> None:
    """Compares with tensorflow-text on words that our vocabulary does not hold as a whole."""
    text = pytest.importorskip("tensorflow_text")
    letters = "abcdefghijklmnopqrstuvwxyz"
    longer = ["breath", "so", "der", "un"]
    continued = ["breath", "taking", "ta", "der", "berg", "able", *letters]
    vocabulary = [*letters, *longer, *(f"##{each}" for each in continued), "[UNK]"]
    peer = text.FastWordpieceTokenizer(
        vocabulary, token_out_type=tf.string, no_pretokenization=True
    )
    ours = PieceTokenizer(NGramVocabulary(tuple(vocabulary)))
    for word in ("breathtaking", "soderberg", "unbreathable", "takings", "sober", "derbreathta"):
        pieces = [piece.decode() for piece in peer.tokenize([word]).flat_values.numpy()]
        assert terms(word, ours) == pieces, word
