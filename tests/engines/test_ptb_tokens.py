"""Tokens without TensorFlow, compared with those of the graph."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
import tensorflow as tf

from tests.engines.fuzzed import every_code_point, fuzzed_texts
from tests.tokenizers.real_sentences import real_sentences
from use_st5.engines.ptb_tokens import is_letter, normal, parts, pieces, tokens_of
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer


def tokens(text: str) -> list[str]:
    return [*chain.from_iterable(map(tokens_of, parts(normal(text))))]


def check(texts: list[str]) -> None:
    expected = PTBTokenizer()(tf.constant(texts)).to_list()
    for text, each in zip(texts, expected, strict=True):
        assert tokens(text) == [token.decode() for token in each], repr(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They'll save.", ["they", "'ll", "save", "."]),
        ('"I cannot," he said.', ["``", "i", "can", "not", ",", "''", "he", "said", "."]),
        ("wanna 'tis wanna  'tis", ["wan", "na", "'tis", "wan", "na", "'t", "is"]),
        ("''a ''b", ["''", "a", "``", "b"]),
        ("e.g. this.", ["e.g.", "this", "."]),
        ("", []),
        (" \t\u3000", []),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected
    check([text])


def test_fuzzed_texts() -> None:
    check(fuzzed_texts(4000))


@pytest.mark.end_to_end
@pytest.mark.parametrize("pattern", ["{}", "a{}b", "x '{}."])
def test_every_code_point(pattern: str) -> None:
    check(every_code_point(pattern))


def test_a_code_point_of_every_block() -> None:
    check([f"A,{text}b ΑΣ{text}" for text in every_code_point("{}")[::61]])


def test_letters_are_those_of_the_graph() -> None:
    every = every_code_point("{}")
    expected = tf.strings.regex_full_match(every, r"[\pL\pM\pN]").numpy().tolist()
    assert [*map(is_letter, every)] == expected


def test_real_sentences(data_dir: Path) -> None:
    check(real_sentences(data_dir, 20_000))


def test_pieces_have_the_tokens_of_the_whole() -> None:
    text = normal("“wanna 'tis” " + " ".join(fuzzed_texts(300)) + " end.")
    found: list[str] = []
    start = 0
    for piece in pieces(text, 20):
        last = start + len(piece) == len(text)
        found += chain.from_iterable(map(tokens_of, parts(piece, first=not start, last=last)))
        start += len(piece)
    assert start == len(text)
    assert found == tokens(text)
