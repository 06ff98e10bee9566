"""Added tokens, compared with Hugging Face's tokenizers and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.convert.tokenizer_examples import MERGES, WORDS, byte_pair, ids_of, wordpiece
from use_st5.convert.tokenizer_files import read_tokenizer
from use_st5.tokenizers.byte_pair_tokenizer import byte_letters
from use_st5.tokenizers.framed_tokenizer import AddedToken, AddedTokens

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")

TEXTS = [
    "", "the cat", "the  cat", "a    b", "     ", " the", "covid", "COVID-19 covidiot",
    "éa e\u0301a",
    "C++ or c++", "the\n  cat  ", "[unused0]the", "x[unused0][unused0]y", "日本 😀 .*", "covi",
]  # fmt: skip
SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
ORDINARY = ["  ", "    ", "C++", "[unused0]"]


def added(number: int, content: str, **settings: bool) -> dict[str, Any]:
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    return {"id": number, "content": content, "special": False, **how, **settings}


def modernbert() -> dict[str, Any]:
    """A `tokenizer.json` like ModernBERT's: padding is no early piece, spaces are tokens."""
    whole = byte_pair([*map(" ".join, MERGES)])
    pieces = ["|||IP_ADDRESS|||", *byte_letters(), *map("".join, MERGES)]
    special = {"special": True, "normalized": False}
    names = [*SPECIAL, *ORDINARY]
    ids = {name: len(pieces) + number for number, name in enumerate(names)}
    start, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    one, two = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    whole["model"]["vocab"] = ids_of(pieces)
    return {
        **whole,
        "normalizer": {"type": "NFC"},
        "added_tokens": [
            added(number, name, **(special if name in SPECIAL else {}))
            for name, number in ids.items()
        ],
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, one, end],
            "pair": [start, one, end, two, end],
            "special_tokens": {
                name: {"id": name, "ids": [ids[name]], "tokens": [name]}
                for name in ("[CLS]", "[SEP]")
            },
        },
    }


def uncased() -> dict[str, Any]:
    """A BERT with two more words, one of which is found only in text that is not normalised."""
    number = len(WORDS)
    tokens = [added(number, "Covid"), added(number + 1, "C++", normalized=False)]
    return {**wordpiece(), "added_tokens": tokens}


def write(folder: Path, content: dict[str, Any]) -> Path:
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("make", [modernbert, uncased])
def test_the_ids_of_hugging_face(make: Any, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `peers` is not installed")
    peer = tokenizers.Tokenizer.from_file(str(write(tmp_path, make()) / "tokenizer.json"))
    tokenizer = read_tokenizer(tmp_path)
    padding = tokenizer.padding_id
    swap = {0: padding, padding: 0}

    def rows(ids: Any) -> list[list[int]]:
        whole = [np.trim_zeros(row, "b").tolist() for row in np.asarray(ids)]
        return [[swap.get(each, each) for each in row] for row in whole]

    for text in TEXTS:
        expected = peer.encode(text)
        assert rows(tokenizer.padded([text])) == [expected.ids], (text, expected.tokens)
    assert rows(tokenizer.padded(TEXTS)) == [each.ids for each in peer.encode_batch(TEXTS)]
    counts = tokenizer.token_counts(TEXTS).numpy().tolist()
    assert counts == [len(each.ids) for each in peer.encode_batch(TEXTS)]
    pairs = [*zip(TEXTS, TEXTS[::-1], strict=True)]
    expected = [each.ids for each in peer.encode_batch(pairs)]
    assert rows(tokenizer.padded_pairs(TEXTS, TEXTS[::-1])) == expected


@pytest.mark.parametrize("make", [modernbert, uncased])
def test_an_exported_tokenizer_knows_them(make: Any, tmp_path: Path) -> None:
    tokenizer = read_tokenizer(write(tmp_path, make()))
    home = Path(tokenizer._assets[0].asset_path.numpy().decode()).parent
    again = type(tokenizer).from_assets(home)
    assert again.vocabulary == tokenizer.vocabulary
    assert (again.mask, again.separator) == (tokenizer.mask, tokenizer.separator)
    np.testing.assert_array_equal(again.padded(TEXTS), tokenizer.padded(TEXTS))


def test_the_longest_comes_first_and_ordinary_text_is_normalised() -> None:
    tokens = [AddedToken("Ab", 5), AddedToken("ABC", 6), AddedToken("X.", 7, normalized=False)]

    def lengths(text: tf.Tensor) -> tf.RaggedTensor:
        number = tf.strings.length(text)
        return tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(number, number > 0), tf.cast(number > 0, tf.int64)
        )

    found = AddedTokens(tokens, tf.strings.lower).pieces(
        tf.constant(["zzABCab", "", "x.X.xabb", "q"]), lengths
    )
    assert found.to_list() == [[2, 6, 5], [], [2, 7, 1, 5, 1], [1]]


@pytest.mark.parametrize("tokens", [["c" * 10**6], [f"token{number}" for number in range(10**4)]])
def test_more_than_re2_has_memory_for_is_refused(tokens: list[str], tmp_path: Path) -> None:
    added_tokens = [added(number + 12, each) for number, each in enumerate(tokens)]
    folder = write(tmp_path, {**wordpiece(), "added_tokens": added_tokens})
    with pytest.raises(ValueError, match=r"tokenizer.json: .* up to 16,384 bytes"):
        read_tokenizer(folder)


@pytest.mark.parametrize("tokens", [("a", "a"), ("",), ("A", "a")])
def test_tokens_that_are_none_are_refused(tokens: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="each once and none empty"):
        AddedTokens([AddedToken(each, 3) for each in tokens], tf.strings.lower)
