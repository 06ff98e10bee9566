"""Words of scripts with and without spaces."""

from __future__ import annotations

import unicodedata

import pytest

from use_st5.search.words import WordIndex, spaced


def test_two_letters_are_a_word_where_there_are_no_spaces() -> None:
    assert spaced("a cat, Tea-time") == "a cat, Tea-time"
    assert spaced("東京tower大学院").split() == ["東京", "tower", "大学", "学院"]
    assert spaced("ﾄｳｷｮｳ") == spaced("トウキョウ")
    assert spaced("猫") == " 猫 "
    assert spaced("𠮷野家").split() == ["𠮷野", "野家"], "beyond the first plane"
    assert spaced("한국어 단어") == "한국어 단어"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("京都大学", "私は京都に住んでいます"),
        ("กรุงเทพ", "ฉันอยู่ที่กรุงเทพมหานคร"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("STRASSE", "Die Straße ist lang"),
        ("ｗｏｒｄ", "a word here"),
        (unicodedata.normalize("NFD", "café"), "Le café est ici"),
        ("İstanbul", "istanbul büyük"),
    ],
)
def test_a_word_is_found_in_every_script(query: str, text: str) -> None:
    pytest.importorskip("bm25s")
    index = WordIndex(["something else", "другое", text])
    assert index.search(query, k=3)[1].tolist() == [2]
