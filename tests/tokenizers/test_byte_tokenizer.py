"""Strings as numbers and back."""

from __future__ import annotations

import tensorflow as tf

from use_st5.tokenizers.byte_tokenizer import ByteTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer

TEXTS = ["", "a", "abc", "abcd", "Ünheard-of 😀 words", "日本語", " spaces  ", "\n"]


def test_texts_come_back() -> None:
    tokenizer = ByteTokenizer()
    assert isinstance(tokenizer, Tokenizer)
    ids = tokenizer.padded(tf.constant(TEXTS))
    assert [each.decode() for each in tokenizer.strings(ids).numpy()] == TEXTS
    counts = tf.math.count_nonzero(ids, axis=1, dtype=tf.int32).numpy().tolist()
    assert counts == tokenizer.token_counts(tf.constant(TEXTS)).numpy().tolist()
    assert counts[:4] == [1, 1, 1, 2]
    assert int(tf.reduce_max(ids)) < tokenizer.vocabulary.size
    for text, row in zip(TEXTS, ids.numpy(), strict=True):
        alone = tokenizer.padded(tf.constant([text])).numpy()[0]
        assert row[: len(alone)].tolist() == alone.tolist()


def test_the_bytes_of_an_id() -> None:
    ids = ByteTokenizer().padded(tf.constant(["abcd"])).numpy().tolist()
    assert ids == [[1 + 97 + 98 * 256 + 99 * 65536, 1 + 100]]


def test_a_cut_text_has_whole_characters() -> None:
    tokenizer = ByteTokenizer()
    for limit, expected in ((1, "ab"), (2, "abéd"), (3, "abéd")):
        ids = tokenizer.token_ids(tf.constant(["abéd"]), limit)
        assert ids.shape == (1, limit)
        assert tokenizer.strings(ids).numpy()[0].decode() == expected


def test_other_bytes_are_replaced() -> None:
    ids = ByteTokenizer().padded(tf.constant([b"a\xff"]))
    assert ByteTokenizer.strings(ids).numpy()[0].decode() == "a\ufffd"
