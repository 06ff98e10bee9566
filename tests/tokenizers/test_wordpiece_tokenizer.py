"""BERT's tokenizer, compared with Hugging Face's, and cases computed by hand."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizers.real_sentences import real_sentences

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

from use_st5.data.arrays import fingerprint  # noqa: E402
from use_st5.tokenizers.wordpiece_tokenizer import WordPieceTokenizer, read_words  # noqa: E402

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
CLS, SEP, UNK = 2, 3, 1
WORDS = (*SPECIAL, "the", "cat", "##s", "un", "##able", ".", "cafe", "Cat", "今", "日", "##日", "[")

HARD = [
    "", "   ", " a  b ", "tab\there\nand\r\nthere", "é́ ½ ﬁ ẞ ß İstanbul ΣΑΣ ς", "😀 emoji 漢字",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
    "a\u00a0b\u200bc\ufeffd\u3000e\u2028f", "soft\u00adhyphen", "Hmmm", "a" * 100, "a" * 101,
    "é" * 100, "é" * 101, "ก" * 100 + " " + "ก" * 101, "的" * 300, "x" * 5000, "\x00 nul \x7f\x85",
    "\ufffd � \ue000", "한국어 문장", "한국어", "ㄱㄴ", "العَرَبِيَّة", "हिन्दी में", "ไทย", "Tiếng Việt",
    "don't can't \u2018curly\u2019 \u201cquotes\u201d … — –", "`^$+<=>|~ _", "¿Qué? ¡Ah! «x» ①",
    "ａｂｃ１２３！", "カタカナ ｶﾀｶﾅ ひらがな゛", "𠀀𪜀𫝀𫠠𬺰丽", "1e10 3.14 1,000", "#hash",
    "@at ##s", "UNK] SEP]",
    "ﷺ ﷽", "ª º ² ™ ℃ № Ⅻ", "\u1680\u2000 \u202f\u205f", "x\u0301\u0327y\u20dd", "\U000e0041",
    "ᚠ ꭰ Ꭰ",
]  # fmt: skip


def rows(ids: tf.Tensor) -> list[list[int]]:
    return [np.trim_zeros(row, "b").tolist() for row in ids.numpy()]


def ids(tokenizer: WordPieceTokenizer, texts: Sequence[str | bytes], **options: int) -> list:
    return rows(tokenizer.padded(tf.constant(texts, tf.string), **options))


def hugging_face(words: Sequence[str], *, lower_case: bool, split_chinese: bool = True) -> Any:
    """The same tokenizer from the package tokenizers."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    return tokenizers.BertWordPieceTokenizer(
        {word: number for number, word in enumerate(words)},
        lowercase=lower_case,
        handle_chinese_chars=split_chinese,
    )


@pytest.fixture(scope="module")
def small() -> WordPieceTokenizer:
    return WordPieceTokenizer(WORDS)


def test_by_hand(small: WordPieceTokenizer) -> None:
    assert ids(small, ["The CATS.", "", "unable café", "今日 dog", "cat[SEP"]) == [
        [CLS, 4, 5, 6, 9, SEP],
        [CLS, SEP],
        [CLS, 7, 8, 10, SEP],
        [CLS, 12, 13, UNK, SEP],
        [CLS, 5, 15, UNK, SEP],
    ]
    cased = WordPieceTokenizer(WORDS, lower_case=False, split_chinese=False)
    assert ids(cased, ["the Cat", "The", "今日", "café cafe"]) == [
        [CLS, 4, 11, SEP],
        [CLS, UNK, SEP],
        [CLS, 12, 14, SEP],
        [CLS, UNK, 10, SEP],
    ]
    assert cased.vocabulary != small.vocabulary
    assert fingerprint(cased)["vocabulary"] != fingerprint(small)["vocabulary"]


def test_pairs_by_hand(small: WordPieceTokenizer) -> None:
    first, second = ["the cat", "the"], ["cats . .", ""]
    found = small.padded_pairs(tf.constant(first), tf.constant(second)).numpy()
    assert found.tolist() == [
        [CLS, 4, 5, SEP, 5, 6, 9, 9, SEP],
        [CLS, 4, SEP, SEP, 0, 0, 0, 0, 0],
    ]
    assert found.dtype == np.int32
    cut = rows(small.padded_pairs(tf.constant(first), tf.constant(second), 6))
    assert cut == [[CLS, 4, SEP, 5, 6, SEP], [CLS, 4, SEP, SEP]]
    with pytest.raises(ValueError, match=">= 5, received 4"):
        small.padded_pairs(tf.constant(first), tf.constant(second), 4)


def test_single_words(small: WordPieceTokenizer) -> None:
    found = small.single_ids(["cat", "cats", "dog", "CAT", "", "the cat", "."])
    assert found.tolist() == [5, 0, 0, 5, 0, 0, 9]
    assert found.dtype == np.int32
    assert small.single_ids([]).shape == (0,)


def test_a_word_of_more_than_a_hundred_letters_is_unknown() -> None:
    tokenizer = WordPieceTokenizer((*SPECIAL, "é", "##é", "x"), lower_case=False)
    known = [CLS, 4, *[5] * 99, 6, SEP]
    assert ids(tokenizer, ["é" * 100 + " x", "é" * 101 + " x"]) == [known, [CLS, UNK, 6, SEP]]


def test_padding_need_not_be_the_first_word() -> None:
    """The word at id 0 and padding change places, in the exported vocabulary, too."""
    words = ["[MASK]", "the", "[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer = WordPieceTokenizer(words)
    assert (tokenizer.padding_id, tokenizer.mask) == (2, 2)
    np.testing.assert_array_equal(tokenizer.padded(["the", ""]), [[4, 1, 5], [4, 5, 0]])
    folder = Path(tokenizer._assets[0].asset_path.numpy().decode()).parent
    again = WordPieceTokenizer.from_assets(folder)
    assert (again.padding_id, again.mask, again.vocabulary) == (0, 2, tokenizer.vocabulary)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the words \[CLS\], \[SEP\]"):
        WordPieceTokenizer(SPECIAL[:2])
    with pytest.raises(ValueError, match="without line breaks"):
        WordPieceTokenizer((*SPECIAL, "a\nb"))
    with pytest.raises(ValueError, match=r"at most 256 bytes|exceeds the max"):
        WordPieceTokenizer((*SPECIAL, "今" * 100))
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\n\xff\n")
    with pytest.raises(ValueError, match="expected UTF-8"):
        read_words(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match=">= 3, received 2"):
        WordPieceTokenizer(WORDS).padded(tf.constant(["a"]), 2)


def test_odd_vocabularies() -> None:
    """Words may be empty or occur twice; of two equal words the last one counts."""
    tokenizer = WordPieceTokenizer((*SPECIAL, "a", "", "a", "##a", "##", "\U000f0000"))
    assert ids(tokenizer, ["a aa", "##", "\U000f0000"]) == [
        [CLS, 6, 6, 7, SEP],
        [CLS, UNK, UNK, SEP],
        [CLS, SEP],
    ]


# Every character of the planes in use, alone and as part of a word.
PLANES = [*range(0x1, 0xD800), *range(0xE000, 0x20000), *range(0x2A6C0, 0x2B940), 0xE0001, 0x10FFFD]


@pytest.mark.parametrize("lower_case", [True, False])
@pytest.mark.parametrize("split_chinese", [True, False])
def test_every_character_is_read_as_by_hugging_face(
    *, lower_case: bool, split_chinese: bool
) -> None:
    known = [
        chr(point) for point in (*range(0xA1, 0x3000), *range(0xAC00, 0xAD00)) if point != 0xAD
    ]
    words = [*SPECIAL, "a", "b", "##a", "##b", *known, *(f"##{each}" for each in known)]
    peer = hugging_face(words, lower_case=lower_case, split_chinese=split_chinese)
    tokenizer = WordPieceTokenizer(words, lower_case=lower_case, split_chinese=split_chinese)
    texts = [f"a{chr(point)}b" for point in PLANES]
    pieces = tf.function(tokenizer.pieces)(tf.constant(texts)).to_list()
    expected = [each.ids for each in peer.encode_batch(texts, add_special_tokens=False)]
    different = [
        hex(point) for point, *pair in zip(PLANES, pieces, expected, strict=True)
        if pair[0] != pair[1] and unicodedata.category(chr(point)) != "Cn"
    ]  # fmt: skip
    assert different == []


@pytest.fixture(scope="module")
def trained() -> tuple[Any, WordPieceTokenizer]:
    """Both tokenizers with a cased vocabulary that is trained on the hard strings."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    peer = tokenizers.BertWordPieceTokenizer(lowercase=False)
    texts = [text[:60] for text in HARD]
    texts += [text.lower() for text in texts]
    peer.train_from_iterator(texts * 3, vocab_size=600, show_progress=False)
    words = _words(peer)
    return hugging_face(words, lower_case=False), WordPieceTokenizer(words, lower_case=False)


def _words(peer: Any) -> list[str]:
    vocabulary = peer.get_vocab()
    return sorted(vocabulary, key=vocabulary.get)


def test_hard_strings(trained: tuple[Any, WordPieceTokenizer]) -> None:
    peer, cased = trained
    for other, tokenizer in (
        (peer, cased),
        (hugging_face(_words(peer), lower_case=True), WordPieceTokenizer(_words(peer))),
    ):
        expected = [each.ids for each in other.encode_batch(HARD)]
        assert ids(tokenizer, HARD) == expected
        assert tokenizer.token_counts(tf.constant(HARD)).numpy().tolist() == [*map(len, expected)]


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=20))
def test_strings_that_hypothesis_draws(
    trained: tuple[Any, WordPieceTokenizer], texts: list[str]
) -> None:
    peer, tokenizer = trained
    assert ids(tokenizer, texts) == [each.ids for each in peer.encode_batch(texts)]


@pytest.mark.parametrize("max_tokens", [5, 6, 7, 12, 40])
def test_pairs_are_cut_as_by_hugging_face(
    trained: tuple[Any, WordPieceTokenizer], max_tokens: int
) -> None:
    peer, tokenizer = trained
    lengths = range(12)
    pairs = [("Hmmm " * one, "漢" * two) for one in lengths for two in lengths]
    peer.enable_truncation(max_tokens)
    expected = [each.ids for each in peer.encode_batch(pairs)]
    peer.no_truncation()
    first, second = (tf.constant(texts) for texts in zip(*pairs, strict=True))
    assert rows(tokenizer.padded_pairs(first, second, max_tokens)) == expected


def test_real_sentences_have_the_ids_of_hugging_face(data_dir: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    sentences = real_sentences(data_dir)[::4]
    cased = tokenizers.BertWordPieceTokenizer(lowercase=False)
    cased.train_from_iterator(sentences[::2], vocab_size=20_000, show_progress=False)
    uncased = read_words(data_dir / "vocab/bert-base-uncased/vocab.txt")
    for words, lower_case, texts in (
        (uncased, True, sentences),
        (_words(cased), False, sentences[::2]),
    ):
        peer = hugging_face(words, lower_case=lower_case)
        tokenizer = WordPieceTokenizer(words, lower_case=lower_case)
        padded = tf.function(tokenizer.padded, input_signature=[tf.TensorSpec([None], tf.string)])
        for start in range(0, len(texts), 4096):
            batch = texts[start : start + 4096]
            expected = [each.ids for each in peer.encode_batch(batch)]
            assert rows(padded(tf.constant(batch))) == expected
