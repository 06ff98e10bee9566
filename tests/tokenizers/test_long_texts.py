"""Texts in pieces have the tokens, ids and counts of whole texts, for any size of a piece."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from use_st5.tokenizers import long_texts
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer, byte_letters
from use_st5.tokenizers.long_texts import cut, fold
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.token_tokenizer import PieceTokenizer, UnigramTokenizer

WORDS = ("the", "cat", "n't", "``", ".", "mr.", "wan", "na", "c", "##a", "##t")
UNIGRAMS = NGramVocabulary(WORDS, unigram_buckets=5)
BIGRAMS = NGramVocabulary(WORDS, ("the cat", "wan na", ". ."), 5, 3)
PARTS = (
    "the", "cat", "Mr.", "wanna", "'tis", '"', "don't", "dogs'", "...", ".", ",", "it's", "caaat",
    "\u3000", " ", "   ", "\n", "漢字", "é", "e\u0301", "\u200b", "\x00", "x" * 30, "½", "¨", "",
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every text count as long, and makes pieces and blocks small."""
    monkeypatch.setattr(long_texts, "LONG_BYTES", -1)
    monkeypatch.setattr(long_texts, "_PIECES_IN_A_BLOCK", 3)
    for name in ("ngram_tokenizer", "long_texts"):
        monkeypatch.setattr(f"use_st5.tokenizers.{name}.cut", _cut_small)


def _cut_small(text: tf.Tensor, *, between: str) -> tuple[tf.Tensor, tf.Tensor]:
    return cut(text, between=between, piece_bytes=4)


def batches(count: int = 5) -> Iterator[list[bytes]]:
    """Random texts, most of words and some of bytes."""
    generator = random.Random(0)
    for _ in range(count):
        yield [
            generator.randbytes(generator.randint(0, 40))
            if generator.random() < 0.2
            else b" ".join(p.encode() for p in generator.choices(PARTS, k=generator.randint(0, 30)))
            for _ in range(generator.randint(1, 40))
        ]


def test_cut_by_hand() -> None:
    text = tf.constant(["ab c defghijk l m", "", "abcdefgh", "ab  cd"])
    pieces, positions = cut(text, between="[^ ]", piece_bytes=3)
    assert pieces.numpy().tolist() == [b"ab c", b"defghijk", b"l m", b"", b"abcdefgh", b"ab  cd"]
    assert positions.numpy().tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [3, 0]]


@pytest.mark.usefixtures("small")
def test_fold_reads_every_piece_once() -> None:
    def read(pieces: tf.Tensor, rows: tf.Tensor, seen: tf.Tensor) -> tuple[tf.Tensor]:
        assert len(pieces) == len(rows) <= 3
        return (tf.strings.join([seen, tf.strings.reduce_join(pieces)]),)

    (seen,) = fold(read, (tf.constant(""),), tf.constant([*"abcdefg"]), tf.range(7))
    assert seen == b"abcdefg"


def results(tokenizer: Any) -> Iterator[np.ndarray]:
    for texts in batches():
        text = tf.constant(texts)
        yield tokenizer.token_counts(text).numpy()
        for limit in (3, 7, 1000):
            yield tokenizer.padded(text, limit).numpy()
            yield tokenizer.token_ids(text, limit).numpy()


def check(tokenizer: Any, request: pytest.FixtureRequest) -> None:
    whole = [*results(tokenizer)]
    request.getfixturevalue("small")
    for expected, found in zip(whole, results(tokenizer), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [NGramTokenizer, UnigramTokenizer, PieceTokenizer])
def test_token_ids_and_counts(kind: type, request: pytest.FixtureRequest) -> None:
    check(kind(BIGRAMS if kind is NGramTokenizer else UNIGRAMS), request)


def test_sentencepieces_and_counts(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    check(SentencePieceTokenizer(), request)


def test_word_pieces_and_counts(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

    letters = [*"abcdefghijklmnopqrstuvwxyz'.,漢"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{each}" for each in letters)]
    check(WordPieceTokenizer(words), request)


@pytest.mark.end_to_end
def test_byte_pairs_and_counts(request: pytest.FixtureRequest) -> None:
    merges = (("t", "h"), ("th", "e"), ("Ġ", "c"), ("Ġc", "at"), ("a", "t"), ("Ġ", "Ġ"))
    pieces = ("<s>", "<pad>", "</s>", *byte_letters(), *map("".join, merges))
    check(BytePairTokenizer({each: number for number, each in enumerate(pieces)}, merges), request)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("vocabulary", [UNIGRAMS, BIGRAMS])
def test_blocks_of_n_grams_are_the_flat_ones(vocabulary: NGramVocabulary) -> None:
    tokenizer = NGramTokenizer(vocabulary)
    for texts in batches():
        text = tf.constant(texts)
        pieces, rows = tokenizer.pieces(text)
        assert len(pieces) > len(texts)
        last, found = (tf.constant(""), tf.constant(-1)), []
        for start in range(0, len(pieces), 2):
            ids, rows_of_ids, *last = tokenizer.block(
                pieces[start : start + 2], rows[start : start + 2], *last
            )
            found.append(np.stack([ids, rows_of_ids]))
        np.testing.assert_array_equal(np.concatenate(found, axis=1), tokenizer.flat(text))
