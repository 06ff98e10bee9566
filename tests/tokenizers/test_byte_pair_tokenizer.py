"""Byte pairs, and the words that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizers.real_sentences import real_sentences
from use_st5.tokenizers.byte_pair_tokenizer import (
    ByteLevelWords,
    BytePairTokenizer,
    byte_letters,
    read_merges,
    read_pieces,
)


def test_words_by_hand() -> None:
    texts = ["I've  two\n cats'll", "", "it's's 'tis", " \n", "a \n\nb", "¡'s 9'sx"]
    words, splits = ByteLevelWords()(tf.constant(texts))
    found = [word.decode() for word in words.numpy()]
    assert [found[a:b] for a, b in zip(splits[:-1].numpy(), splits[1:].numpy(), strict=True)] == [
        ["I", "'ve", " ", " two", "\n", " cats", "'ll"],
        [],
        ["it", "'s", "'s", " '", "tis"],
        [" \n"],
        ["a", " \n", "\n", "b"],
        ["¡'", "s", " 9", "'s", "x"],
    ]


def test_every_character_is_of_its_class() -> None:
    pre_tokenizers = pytest.importorskip(
        "tokenizers", reason="the extra `peers` is not installed"
    ).pre_tokenizers
    peer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    points = [each for each in range(1, 0x32500) if not 0xD800 <= each < 0xE000]
    texts = [f"a{chr(each)}1{chr(each)}!{chr(each)} {chr(each)}{chr(each)}a" for each in points]
    words, splits = ByteLevelWords()(tf.constant(texts))
    lengths = tf.strings.length(words).numpy().tolist()
    for text, start, end in zip(texts, splits[:-1].numpy(), splits[1:].numpy(), strict=True):
        expected = [len(word) for word, _ in peer.pre_tokenize_str(text)]
        assert lengths[start:end] == expected, ascii(text)


SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
PAD, START, END = 0, 1, 2
MERGES = (("t", "h"), ("th", "e"), ("Ġ", "c"), ("a", "t"), ("Ġc", "at"), ("a", "a"), ("'", "s"))

HARD = [
    "", " ", "  ", " a  b ", "a\n b", "a \n\nb", "a\t b\r\n", "trail \n ",
    "don't we'll I'd it's 's's",
    "'S 'LL we'RE 'tis ''s !'s 's 'l 'v '", "x'rex 've9 'm's'd'll", "1st 22nd ½ Ⅻ ٣", "a.b,c !? …",
    "é́ ﬁ ẞ ß İ", "😀😀 👍🏽 \U0001f469\u200d\U0001f469 \u2764\ufe0f",
    "漢字 かな カナ 한국어", "हिन्दी में ไทย",
    "a\u00a0b\u200bc\ufeffd\u3000e\u2028f\x85g", "\x00 nul\x7f", "\ufffd � \ue000",
    "aaaaaaa aaaaaa",
    "the cat's thethe cat" * 5, "x" * 3000, " " * 300, "\n" * 30 + "x",
    "<s> </s> <pad> <mask>", "ĠthéĠ Ċ",
    "ʼn ’s ‘re", "_a__b_", "𠀀𪜀", "a \u2003b", "\u00a0 a", " \u00a0a", "\u00a0a", "1\u00a02",
]  # fmt: skip


def rows(ids: tf.Tensor) -> list[list[int]]:
    return [np.trim_zeros(row, "b").tolist() for row in ids.numpy()]


def ids(tokenizer: BytePairTokenizer, texts: Sequence[str | bytes], **options: int) -> list:
    return rows(tokenizer.padded(tf.constant(texts, tf.string), **options))


def small_pieces() -> dict[str, int]:
    pieces = (*SPECIAL, *byte_letters(), *map("".join, MERGES))
    return {piece: number for number, piece in enumerate(pieces)}


@pytest.fixture(scope="module")
def small() -> BytePairTokenizer:
    return BytePairTokenizer(small_pieces(), MERGES)


def test_by_hand(small: BytePairTokenizer) -> None:
    pieces = small_pieces()
    expected = [
        ["the", "Ġcat", "'s"],
        [],
        ["Ġ", "Ġcat", "Ġ"],
        ["aa", "a", "at"],
        ["Ã", "©"],
        ["Ġ", "th"],
    ]
    found = ids(small, ["the cat's", "", "  cat ", "aaaat", "é", " th"])
    assert found == [[START, *(pieces[each] for each in row), END] for row in expected]


def test_pairs_by_hand(small: BytePairTokenizer) -> None:
    the, cat, end = (small_pieces()[each] for each in ("the", "Ġcat", "</s>"))
    assert small.separator == end == END
    found = small.padded_pairs(tf.constant(["the cat", ""]), tf.constant(["the", "the"]))
    assert found.numpy().tolist() == [
        [START, the, cat, END, END, the, END],
        [START, END, END, the, END, PAD, PAD],
    ]
    assert rows(small.padded_pairs(["the cat cat"], ["the cat"], 7)) == [
        [START, the, cat, END, END, the, END]
    ]
    counts = small.pair_token_counts(tf.constant(["the cat cat", ""]), tf.constant(["the", "the"]))
    assert counts.numpy().tolist() == [8, 5]
    with pytest.raises(ValueError, match=">= 6, received 5"):
        small.padded_pairs(["a"], ["b"], 5)


def test_single_words(small: BytePairTokenizer) -> None:
    pieces = small_pieces()
    found = small.single_ids(["the", " cat", "cat", "", "x", "<s>"]).tolist()
    assert found == [pieces["the"], pieces["Ġcat"], 0, 0, pieces["x"], 0]


def test_refusals(tmp_path: Path) -> None:
    pieces = small_pieces()
    gpt2 = {piece: number - 5 for piece, number in pieces.items() if number > 4}
    for wrong, message in (
        (gpt2, "the pieces .*<s>"),
        ({**pieces, "the": 7}, "an id of its own"),
        ({k: v for k, v in pieces.items() if k != "Ġ"}, "the pieces .*Ġ"),
    ):
        with pytest.raises(ValueError, match=message):
            BytePairTokenizer(wrong, MERGES)
    with pytest.raises(ValueError, match="received none"):
        BytePairTokenizer(pieces, ())
    for pair in (("t", "x"), ("the", "漢"), ("", "t")):
        with pytest.raises(ValueError, match="a merge of pieces.*number 8"):
            BytePairTokenizer(pieces, (*MERGES, pair))
    (tmp_path / "merges.txt").write_text("t h\nthe\n")
    with pytest.raises(ValueError, match="merges.txt:2: expected two pieces.*the"):
        read_merges(tmp_path / "merges.txt")
    with pytest.raises(FileNotFoundError):
        read_pieces(tmp_path / "vocab.json")


def _swapped(ids: list[int]) -> list[int]:
    return [START, *ids, END]


Peer = tuple[Any, BytePairTokenizer]


def trained_on(texts: list[str], size: int, folder: Path) -> Peer:
    """A tokenizer of the package tokenizers, trained on texts, and ours from its files."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    peer = tokenizers.ByteLevelBPETokenizer()
    peer.train_from_iterator(texts, vocab_size=size, special_tokens=[*SPECIAL], show_progress=False)
    peer.save_model(str(folder))
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    # After reading the files, the special tokens are ordinary texts, as in our tokenizer.
    peer = tokenizers.ByteLevelBPETokenizer(str(vocabulary), str(merges))
    return peer, BytePairTokenizer(read_pieces(vocabulary), read_merges(merges))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Peer:
    return trained_on([text[:80] for text in HARD] * 3, 500, tmp_path_factory.mktemp("trained"))


def test_hard_strings(trained: Peer) -> None:
    peer, tokenizer = trained
    expected = [_swapped(each.ids) for each in peer.encode_batch(HARD)]
    assert ids(tokenizer, HARD) == expected
    assert tokenizer.token_counts(tf.constant(HARD)).numpy().tolist() == [*map(len, expected)]


PARTS = ["'", "s", "t", "re", "ve", "ll", " ", "  ", "\n", "\t", "a", "9", "!", "é", "😀", "\u00a0"]


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.text(max_size=40) | st.lists(st.sampled_from(PARTS)).map("".join), min_size=1)
)
def test_strings_that_hypothesis_draws(trained: Peer, texts: list[str]) -> None:
    peer, tokenizer = trained
    expected = [_swapped(each.ids) for each in peer.encode_batch(texts)]
    assert ids(tokenizer, texts) == expected


def test_merges_in_any_order(tmp_path: Path) -> None:
    """A merge may come before those that make its parts."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    merges = [
        ("ab", "c"),
        ("b", "c"),
        ("a", "b"),
        ("a", "a"),
        ("aa", "a"),
        ("bc", "a"),
        ("c", "ab"),
    ]
    pieces = {
        each: number
        for number, each in enumerate(
            [*SPECIAL, *byte_letters(), *{one + two: None for one, two in merges}]
        )
    }
    peer = tokenizers.ByteLevelBPETokenizer(pieces, merges)
    random = np.random.default_rng(0)
    texts = ["".join(random.choice([*"abc"], size)) for size in range(1, 60) for _ in range(5)]
    expected = [_swapped(each.ids) for each in peer.encode_batch(texts)]
    assert ids(BytePairTokenizer(pieces, merges), texts) == expected


def test_pairs_are_those_of_hugging_face(trained: Peer, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra `peers` is not installed")
    peer, tokenizer = trained
    peer.save_model(str(tmp_path))
    roberta = transformers.RobertaTokenizerFast.from_pretrained(tmp_path)
    first = ["the cat's", "aaaa " * 9, "", "x"]
    second = ["it's", "漢字", "a.b", "the cat " * 9]
    for size in (9, 10, None):
        expected = roberta(
            first, second, truncation=size is not None, max_length=size, padding=False
        )["input_ids"]
        swap = {0: 1, 1: 0}
        expected = [[swap.get(each, each) for each in row] for row in expected]
        found = tokenizer.padded_pairs(tf.constant(first), tf.constant(second), size)
        assert rows(found) == expected


def test_real_sentences_have_the_ids_of_hugging_face(data_dir: Path, tmp_path: Path) -> None:
    sentences = real_sentences(data_dir)[::4]
    peer, tokenizer = trained_on(sentences, 20_000, tmp_path)
    padded = tf.function(tokenizer.padded, input_signature=[tf.TensorSpec([None], tf.string)])
    for start in range(0, len(sentences), 4096):
        batch = sentences[start : start + 4096]
        expected = [_swapped(each.ids) for each in peer.encode_batch(batch)]
        assert rows(padded(tf.constant(batch))) == expected
