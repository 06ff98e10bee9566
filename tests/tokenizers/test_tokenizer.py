"""The contract of tokenizers, as far as tests/fuzz does not test it with odd strings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.models.toy_family import TrigramTokenizer
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer, byte_letters
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.token_tokenizer import PieceTokenizer, UnigramTokenizer
from use_st5.tokenizers.tokenizer import Tokenizer

WORDS = ("the", "cat", "sat", "on", "mat", "##s", "##at", "c", "un")
TEXTS = ["The cat sat on the mat.", "", "cats unsat 😀", "  \t", "don't", b"caf\xe9", "ΣΑΣ, 今日は"]


def _sentencepieces() -> Tokenizer:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    return SentencePieceTokenizer()


def _wordpieces() -> Tokenizer:
    pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

    return WordPieceTokenizer(("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, ".", "'", "don"))


def _byte_pairs() -> Tokenizer:
    special = ("<s>", "<pad>", "</s>", "<unk>")
    merges = (("t", "h"), ("th", "e"), ("Ġ", "c"), ("a", "t"), ("Ġc", "at"))
    pieces = (*special, *byte_letters(), *map("".join, merges))
    return BytePairTokenizer({piece: number for number, piece in enumerate(pieces)}, merges)


MAKERS: dict[str, Callable[[], Tokenizer]] = {
    "ngrams": lambda: NGramTokenizer(
        NGramVocabulary(WORDS, ("the cat",), unigram_buckets=3, bigram_buckets=2)
    ),
    "unigrams": lambda: UnigramTokenizer(NGramVocabulary(WORDS, unigram_buckets=3)),
    "pieces": lambda: PieceTokenizer(NGramVocabulary(WORDS, unigram_buckets=3)),
    "sentencepieces": _sentencepieces,
    "wordpiece": _wordpieces,
    "byte_pair": _byte_pairs,
    "trigrams": TrigramTokenizer,
}


@pytest.fixture(scope="module", params=MAKERS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    made = MAKERS[request.param]()
    assert isinstance(made, Tokenizer)
    assert made.kind == request.param
    return made


def test_no_text_gives_no_row(tokenizer: Tokenizer) -> None:
    nothing = tf.constant([], tf.string)
    assert tokenizer.padded(nothing).shape[0] == 0
    assert tokenizer.token_counts(nothing).shape == (0,)


def test_cut_texts_are_beginnings(tokenizer: Tokenizer) -> None:
    whole = tokenizer.padded(tf.constant(TEXTS)).numpy()
    cut = tokenizer.padded(tf.constant(TEXTS), 3).numpy()
    for short, long in zip(cut, whole, strict=True):
        kept = short[short > 0]
        # These tokenizers put an end token after each text, also after a cut one.
        end = -1 if tokenizer.kind in ("sentencepieces", "wordpiece", "byte_pair") else None
        np.testing.assert_array_equal(kept[:end], long[: len(kept)][:end])
    tokens = tokenizer.token_ids(tf.constant(TEXTS), 3).numpy()
    assert tokens.shape == (len(TEXTS), 3)
    assert tokens.dtype == np.int32


def test_a_limit_that_leaves_no_token_is_refused(tokenizer: Tokenizer) -> None:
    if tokenizer.kind == "trigrams":
        return  # The toy checks no limit.
    for cut in (tokenizer.padded, tokenizer.token_ids):
        with pytest.raises(ValueError, match=r"max_tokens.*[123], received 0"):
            cut(tf.constant(["a"]), 0)


def test_rebuilt_from_the_assets_of_a_saved_model(tokenizer: Tokenizer, tmp_path: Path) -> None:
    root = tf.train.Checkpoint(tokenizer=tokenizer)
    tf.saved_model.save(root, str(tmp_path / "model"))
    moved = (tmp_path / "model").rename(tmp_path / "moved")
    again = type(tokenizer).from_assets(moved / "assets")
    assert again.vocabulary == tokenizer.vocabulary
    for ids in (Tokenizer.padded, Tokenizer.token_counts):
        name = ids.__name__
        np.testing.assert_array_equal(
            getattr(again, name)(tf.constant(TEXTS)), getattr(tokenizer, name)(tf.constant(TEXTS))
        )
