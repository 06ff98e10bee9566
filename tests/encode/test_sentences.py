"""The values that count as sentences, and how they are cut into batches."""

from __future__ import annotations

import itertools
import json
import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from use_st5.encode.sentences import (
    language_message,
    length_sorted_batches,
    mostly_not_english,
    one_or_many,
)


@pytest.mark.parametrize(
    "given",
    [
        ["a", "b"],
        ("a", "b"),
        np.array(["a", "b"]),
        (letter for letter in "ab"),
        {"a": 1, "b": 2}.keys(),
        [b"a", np.str_("b")],
        pa.array(["a", "b"]),
        pa.array(["a", "b"], pa.string_view()),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.chunked_array([["a"], [], ["b"]]),
        tf.data.Dataset.from_tensor_slices(["a", "b"]),
    ],
)
def test_any_iterable_of_strings(given: object) -> None:
    assert one_or_many(given)[0] == ["a", "b"]


def test_what_utf_8_cannot_hold() -> None:
    assert one_or_many([b"\xff\xfea", "x\ud800y", "\ud83d\ude00", "é"])[0] == [
        "\ufffd\ufffda",
        "x\ufffdy",
        "\U0001f600",
        "é",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "received NoneType"),
        (3, "received int"),
        ({"a": 1}, "received dict"),
        (["a", None], "received NoneType at index 1: None"),
        ([["a"]], "received list at index 0.*unbatch"),
        (np.array([["a", "b"]]), r"received ndarray \[1, 2\]: give one column"),
        (tf.ragged.constant([["a"], ["b", "c"]]), r"RaggedTensor \[2, None\]"),
        (pa.table({"id": [1, 2], "text": ["a", "b"]}), r"Table \[2, 2\]: give one column"),
        (pa.array(["a", None]), "received NoneType at index 1"),
    ],
)
def test_everything_else_is_an_error_that_names_the_place(given: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        one_or_many(given)[0]


def test_a_number_of_numpy_does_not_overflow() -> None:
    texts = ["x" * length for length in range(300)]
    batches = length_sorted_batches(texts, sentences=np.int8(100))
    for batch, expected in zip(batches, length_sorted_batches(texts, sentences=100), strict=True):
        np.testing.assert_array_equal(batch, expected)


@pytest.mark.parametrize("language", ["deu", "jpn", "fra", "rus"])
def test_texts_of_other_languages(data_dir: Path, language: str) -> None:
    """Of Tatoeba; their English sides are known as English."""
    folder = data_dir / "tatoeba" / "data" / "tatoeba" / "v1"
    texts = {
        side: (folder / f"tatoeba.{language}-eng.{side}").read_text("utf-8").splitlines()
        for side in (language, "eng")
    }
    for start in range(0, 1000, 100):
        assert mostly_not_english(texts[language][start : start + 100])
        assert not mostly_not_english(texts["eng"][start : start + 100])
    assert not mostly_not_english(texts[language][:20]), "too few"


def test_one_text_in_other_languages() -> None:
    for text in ("Wie spät ist es? Ich weiß es leider nicht.", "今何時ですか。", "Который час?"):
        assert mostly_not_english([text] * 50)
        assert not mostly_not_english([text] * 49)
        assert not mostly_not_english([text] * 40 + ["Where is the key that I gave?"] * 60)


def test_english_of_many_domains_is_english(data_dir: Path) -> None:
    files = sorted((data_dir / "english_search" / "passages").glob("*.jsonl.xz"))
    for path in files[::10]:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in itertools.islice(lines, 300)]
        assert not mostly_not_english(texts), path
    assert not mostly_not_english(["Samsung Galaxy S21 128GB", "Pizza, 500 g", "cat"] * 40)


def test_letters_of_a_script_outside_of_the_languages() -> None:
    european = ["en", "de", "ru"]
    for text, script in {
        "何時ですかねえ。": "Hiragana",
        "现在几点了?": "Chinese",
        "กี่โมงแล้ว": "Thai",
        "ﾄｳｷｮｳ": "Katakana",
    }.items():
        message = language_message([text] * 50, european, "toy")
        assert f"Many of these texts are in {script} script, but toy knows en, de, ru" in message
        assert not language_message([text] * 49, european, "toy"), "too few"
    mixed = ["Это Берлин."] * 10 + ["Where is the key?"] * 90
    assert not language_message(mixed, ["en"], "toy"), "below a fifth of the letters"
    assert "in Cyrillic script" in language_message(mixed[:10] * 9 + mixed, ["en"], "toy")
    no_letters = [
        "😀 👍🏽 ❤️",
        "12,5 % ≥ 3 €",
        "for (i = 0; i < n; ++i) { s += a[i]; }",
        "ok",
        "E = mc²",
    ]
    for languages in (european, ["en"], [], None, "en", ["xx"], ["zh-Hant", "ja"]):
        assert not language_message(no_letters * 20, languages, "toy"), languages
    assert not language_message(["東京は大きい。"] * 60, ["ja"], "toy")
    assert not language_message(["大學 와 학교"] * 60, ["ko"], "toy")


def test_batches_by_hand() -> None:
    texts = ["aa", "", "aaaaaaa", "a", "aaaa", "a"]
    batches = length_sorted_batches(texts, sentences=3, characters=6)
    assert [batch.tolist() for batch in batches] == [[2], [4], [0, 3, 5], [1]]


def test_batches_of_long_texts_are_smaller() -> None:
    """By default a batch has at most 200 characters for each of its `sentences`."""
    texts = ["x" * length for length in (401, 10, 400, 400, 10, 10)]
    batches = length_sorted_batches(texts, sentences=4)
    assert [batch.tolist() for batch in batches] == [[0], [2, 3], [1, 4, 5]]


def test_batches_of_anything_hold_each_text_once_within_bounds() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        texts = ["x" * length for length in random.integers(0, 40, random.integers(0, 30))]
        batches = list(length_sorted_batches(texts, sentences=4, characters=50))
        assert sorted(np.concatenate([[], *batches])) == list(range(len(texts)))
        for batch in batches:
            assert len(batch) == 1 or max(len(texts[i]) for i in batch) * len(batch) <= 50
            assert len(batch) <= 4
