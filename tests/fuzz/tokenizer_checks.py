"""The promises of every tokenizer for every batch of strings."""

from __future__ import annotations

import functools
import math
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tests.fuzz.strings import Check, cleaned
from use_st5.data.text_reader import split_sentences
from use_st5.hub.model_names import bundled_folder
from use_st5.tokenizers.byte_pair_tokenizer import BytePairTokenizer, byte_letters
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer
from use_st5.tokenizers.token_tokenizer import PieceTokenizer, UnigramTokenizer
from use_st5.tokenizers.tokenizer import pad_to_bucket
from use_st5.tokenizers.vocabulary_builder import VocabularyBuilder

# More bytes than any stage reads at once.
_LONG = 150_000
# Strings that are joined to a text.
_JOINED = 40
# Texts of a batch whose ids are also taken by the slower ways.
_OTHER_WAYS = 300
_SMALL = ("the", "cat", "'s", "n't", "e\u0301", "今", "``", "##s", "s", "un", "##un")
_WORDS = tuple(term for term in _SMALL if not term.startswith("##"))
_PAIRS = ("the cat", "cat 's", "`` the")


def ptb_tokenizer() -> Check:
    """Tokens are not empty and hold no white space; no letter or digit of ASCII is lost."""
    tokenizer = PTBTokenizer()
    spaced = _graph(tokenizer.spaced)
    split = _graph(lambda text: tokenizer(text).to_tensor())

    def check(texts: list[bytes]) -> None:
        found = spaced(texts).numpy()
        again = spaced(_other_way(texts)).numpy()[::-1]
        assert found.tolist() == again.tolist(), "bytes and str, or neighbours, make a difference"
        for tokens, text in zip(found.tolist(), cleaned(texts), strict=True):
            parts = tokens.decode().split(" ")
            assert tokens.decode().split() == [part for part in parts if part], "white space"
            assert _letters(tokens.decode()) == _letters(text), "a letter was lost"
        rows = [[token for token in row if token] for row in split(texts[:50]).numpy().tolist()]
        assert rows == [tokens.split() for tokens in found[:50].tolist()]

    return check


def _letters(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


def _other_way(texts: list[bytes]) -> list[bytes]:
    """The same texts in the other order, as Python reads them: their ids must be the same."""
    return [text.encode() for text in cleaned(texts)[::-1]]


def ngram_tokenizer() -> Check:
    """With a small vocabulary: pairs, and buckets of both kinds."""
    vocabulary = NGramVocabulary(_WORDS, _PAIRS, unigram_buckets=5, bigram_buckets=7)
    return _tokenizer(NGramTokenizer(vocabulary), ids_of=lambda tokens: 2 * tokens - 1)


def piece_ngram_tokenizer() -> Check:
    """With pieces of words beside the pairs."""
    vocabulary = NGramVocabulary(_SMALL, _PAIRS, unigram_buckets=5, bigram_buckets=7)
    return _tokenizer(NGramTokenizer(vocabulary))


def bundled_ngram_tokenizer() -> Check:
    """With the vocabulary of use_dan_en, which leaves unknown pairs out."""
    return _tokenizer(NGramTokenizer(_bundled("use_dan_en")))


def unigram_tokenizer() -> Check:
    """With a small vocabulary."""
    vocabulary = NGramVocabulary(_SMALL, unigram_buckets=5)
    return _tokenizer(UnigramTokenizer(vocabulary), ids_of=_as_many)


def piece_tokenizer() -> Check:
    """With the vocabulary of use_transformer_en."""
    return _tokenizer(PieceTokenizer(_bundled("use_transformer_en")), ids_of=_as_many)


def sentencepiece_tokenizer() -> Check:
    """With T5's vocabulary; the ids are those of the package sentencepiece, except for ties."""
    import sentencepiece

    from use_st5.tokenizers.sentencepiece_tokenizer import T5_VOCABULARY, SentencePieceTokenizer

    tokenizer = SentencePieceTokenizer()
    package = sentencepiece.SentencePieceProcessor(model_file=str(T5_VOCABULARY))
    padded = _graph(tokenizer.padded)
    check_rows = _tokenizer(tokenizer, ids_of=_as_many)

    def score(ids: list[int]) -> float:
        return sum(map(package.get_score, ids))

    def check(texts: list[bytes]) -> None:
        check_rows(texts)
        for row, expected in zip(
            padded(texts).numpy(), package.encode(cleaned(texts)), strict=True
        ):
            *ids, end = row[row != 0].tolist()
            assert end == tokenizer.eos_id
            # If two ways to cut have the same score, as "ll l" and "l ll", both are right.
            assert ids == expected or math.isclose(score(ids), score(expected), rel_tol=1e-5)

    return check


_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_MERGES = (("t", "h"), ("th", "e"), ("Ġ", "c"), ("Ġc", "at"), ("a", "t"), ("a", "a"), ("'", "s"))


def _wordpieces(**options: bool) -> Any:
    from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

    letters = [chr(point) for point in (*range(33, 127), *range(0xC0, 0x180), 0xFFFD)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *_SMALL, *letters, *(f"##{x}" for x in letters)]
    return WordPieceTokenizer([*dict.fromkeys(words)], **options)


def _byte_pairs() -> BytePairTokenizer:
    pieces = dict.fromkeys([*_SPECIAL, *byte_letters(), *map("".join, _MERGES)])
    return BytePairTokenizer({piece: number for number, piece in enumerate(pieces)}, _MERGES)


def wordpiece_tokenizer() -> Check:
    """Uncased and cased."""
    tokenizers = [_wordpieces(), _wordpieces(lower_case=False)]
    checks = [_tokenizer(each, ids_of=_as_many) for each in tokenizers]

    def check(texts: list[bytes]) -> None:
        for each in checks:
            each(texts)

    return check


def byte_pair_tokenizer() -> Check:
    """The pieces of a text are its bytes, end to end."""
    tokenizer = _byte_pairs()
    check_rows = _tokenizer(tokenizer, ids_of=_as_many)
    padded = _graph(tokenizer.padded)
    bytes_of = {letter: bytes([byte]) for byte, letter in enumerate(byte_letters())}
    spelled = [*dict.fromkeys([*_SPECIAL, *byte_letters(), *map("".join, _MERGES)])]

    def check(texts: list[bytes]) -> None:
        check_rows(texts)
        for row, text in zip(padded(texts).numpy(), cleaned(texts), strict=True):
            start, *ids, end = row[row != 0].tolist()
            assert (start, end) == (1, 2)
            letters = "".join(spelled[each] for each in ids)
            assert b"".join(bytes_of[each] for each in letters) == text.encode()

    return check


def _graph(method: Callable[..., Any]) -> Callable[..., Any]:
    return tf.function(method, input_signature=[tf.TensorSpec([None], tf.string)])


def _as_many(tokens: np.ndarray) -> np.ndarray:
    return tokens


def _tokenizer(
    tokenizer: Any, *, ids_of: Callable[[np.ndarray], np.ndarray] | None = None
) -> Check:
    """Ids are in range and fill rows from the left; order, other texts and bytes change nothing.

    Args:
        tokenizer: A tokenizer with `padded`, `token_counts` and `token_ids`, perhaps `flat`.
        ids_of: Count of tokens → number of ids of a text; None if it is not certain.
    """
    padded, counts = _graph(tokenizer.padded), _graph(tokenizer.token_counts)
    fixed = _graph(lambda text: tokenizer.token_ids(text, 6))
    flat = _graph(tokenizer.flat) if hasattr(tokenizer, "flat") else None

    def check(texts: list[bytes]) -> None:
        ids = padded(texts).numpy()
        assert ids.shape[0] == len(texts)
        _check_rows(ids, tokenizer.vocabulary.size)
        again = padded(_other_way(texts)).numpy()[::-1]
        np.testing.assert_array_equal(ids, again, "bytes and str, or neighbours, differ")
        for place in range(min(3, len(texts))):
            alone = padded(texts[place : place + 1]).numpy()[0]
            np.testing.assert_array_equal(alone, ids[place][ids[place] != 0], "alone, it differs")
        texts, ids = texts[:_OTHER_WAYS], ids[:_OTHER_WAYS]
        if flat is not None:
            values, owners = flat(texts)
            np.testing.assert_array_equal(values, ids[ids != 0])
            np.testing.assert_array_equal(owners, np.nonzero(ids)[0])
        if ids_of is not None:
            np.testing.assert_array_equal((ids != 0).sum(1), ids_of(counts(texts).numpy()))
        targets = fixed(texts).numpy()
        assert targets.shape == (len(texts), 6)
        _check_rows(targets, tokenizer.vocabulary.size)

    return check


def long_texts() -> Check:
    """Texts that are read in pieces have the ids and counts of whole texts, also if they are cut.

    The texts have some kilobytes: over a hundred kilobytes, SentencePiece's sums of float32 lose
    the digits that distinguish two ways of cutting a word.
    """
    from use_st5.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer

    small, pairs = NGramVocabulary(_SMALL, unigram_buckets=5), ("the cat",)
    tokenizers = (
        (NGramTokenizer(NGramVocabulary(_WORDS, pairs, 5, 7)), 9, lambda count: 2 * count - 1),
        (NGramTokenizer(NGramVocabulary(_SMALL, pairs, 5, 7)), 9, None),
        (UnigramTokenizer(small), 5, _as_many),
        (PieceTokenizer(small), 5, _as_many),
        (SentencePieceTokenizer(), 4, _as_many),
        (_wordpieces(), 4, _as_many),
        (_byte_pairs(), 4, _as_many),
    )
    graphs = [
        (
            _graph(tokenizer.padded),
            _graph(tokenizer.token_counts),
            _graph(lambda text, v=tokenizer: v.padded(text, 5)),
            *rest,
        )
        for tokenizer, *rest in tokenizers
    ]

    def check(texts: list[bytes]) -> None:
        starts = range(0, len(texts), _JOINED)
        joined = [b" ".join(texts[start : start + _JOINED]) + b" " for start in starts]
        text = joined * (_LONG // sum(map(len, joined)) + 1)
        for padded, counts, cut, ids, ids_of in graphs:
            whole, short = padded(text).numpy(), cut(text).numpy()
            if ids_of is not None:
                numbers = ids_of(counts(text).numpy())
                np.testing.assert_array_equal((whole != 0).sum(axis=1), numbers)
            for row, its_first in zip(whole, short, strict=True):
                its_first = its_first[its_first != 0][:ids]
                np.testing.assert_array_equal(its_first, row[: len(its_first)])

    return check


def _check_rows(ids: np.ndarray, size: int) -> None:
    if not len(ids):
        return
    filled = ids != 0
    assert filled[:, 0].all(), "a text without any id"
    assert not (filled[:, 1:] & ~filled[:, :-1]).any(), "padding inside a row"
    assert ids.min() >= 0, "an id below 0"
    assert ids.max() < size, "an id beyond the vocabulary"
    short = pad_to_bucket(np.ascontiguousarray(ids[:, :128])).numpy()
    np.testing.assert_array_equal(short[:, : ids.shape[1]], ids[:, :128][:, : short.shape[1]])


@functools.cache
def _bundled(name: str) -> NGramVocabulary:
    return NGramVocabulary.load(bundled_folder(name) / "assets" / "vocabulary.txt")


def vocabulary_builder() -> Check:
    """All tokens are counted, order does not matter, and what is built is read back."""

    def check(texts: list[bytes]) -> None:
        builders = VocabularyBuilder(), VocabularyBuilder()
        builders[0].add(cleaned(texts))
        builders[1].add(texts[::-1])
        tokens = PTBTokenizer()(tf.constant(texts)).flat_values
        assert builders[0].unigrams.counts.total() == int(tf.size(tokens))
        built = [each.build(num_unigrams=10**6, num_bigrams=10**6) for each in builders]
        assert built[0] == built[1]
        with tempfile.TemporaryDirectory(prefix="use_st5_fuzz_") as folder:
            path = Path(folder, "vocabulary.txt")
            built[0].save(path)
            assert NGramVocabulary.load(path) == built[0]

    return check


def sentence_splitter() -> Check:
    """No character is lost, no sentence is blank, and a long text takes little time."""

    def check(texts: list[bytes]) -> None:
        read = cleaned(texts)
        whole = " ".join(read)
        for text in (*read, whole):
            sentences = split_sentences(text)
            assert all(sentence.strip() == sentence != "" for sentence in sentences)
            assert "".join("".join(sentences).split()) == "".join(text.split())
        started = time.thread_time()  # of this thread alone, since others may keep the machine busy
        split_sentences(whole)
        assert time.thread_time() - started < 1 + len(whole) / 50_000, "slow"

    return check


STAGES: dict[str, Callable[[], Check]] = {
    stage.__name__: stage
    for stage in (
        ptb_tokenizer,
        ngram_tokenizer,
        piece_ngram_tokenizer,
        bundled_ngram_tokenizer,
        unigram_tokenizer,
        piece_tokenizer,
        sentencepiece_tokenizer,
        wordpiece_tokenizer,
        byte_pair_tokenizer,
        long_texts,
        vocabulary_builder,
        sentence_splitter,
    )
}
NEED_TEXT = {"sentencepiece_tokenizer", "wordpiece_tokenizer", "long_texts"}
