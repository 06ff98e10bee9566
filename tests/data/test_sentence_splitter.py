from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest

from use_st5.data.text_reader import split_sentences

# Each case is its own expected split: " | " stands for a boundary.
CASES = [
    # Plain ends.
    "It rained. | We stayed in! | Did you? | Yes.",
    "One sentence without an end",
    "It was 1999. | 20 people came.",
    # Quotes and brackets close after the terminator and open before the next sentence.
    '"Go." | Then he left.',
    'He said, "Go." | "Why?" | She stayed.',
    "“Is it?” | ‘It is.’ | (So it was.) | Good.",
    'She said. | "Never!" | And left.',
    "«Oui.» | «Non.»",
    # A question or exclamation inside a sentence.
    '"What!" he cried. | "Where?" asked she.',
    "Yahoo! is a company. | It is old.",
    # Titles, initials, names.
    "Mr. Smith met Mrs. Jones, Dr. Who and St. John. | They talked.",
    "J. R. R. Tolkien wrote it. | C. S. Lewis read it.",
    "It was you and I. | He knew.",
    "I. Newton was there.",
    "I. The Beginning",
    '"It was you and J." | Nobody spoke.',
    "He lives on Elm St. James knows.",  # a title's spelling wins: known limit
    # Abbreviations.
    "Use tools, e.g. Excel, i.e. Office, cf. Smith et al. They are fine.",
    "See Fig. 3 and No. 7 on pp. 12 to 15. | Then stop.",
    "No. | He did not.",
    "It was Jan. 5 when we met. | It snowed.",
    "Bread, milk, etc. | The shop was shut.",
    "The U.S. Senate met at 5 p.m. | It was late.",
    "He works at Acme Inc. | He likes it.",
    "Acme Inc. Germany grew.",
    # Numbers.
    "Pi is 3.14 or so. | The price is $1,000.50. | Done.",
    "1. Introduction",
    "Version 2.0 is out. | Get it.",
    # Ellipses.
    "Well... maybe. | Wait... | Now it goes.",
    "And so… he left. | So… | He came back.",
    "It fell . . . and broke. | It fell . . . | It broke.",
    # Several terminators.
    "What?! | No!! | Really.",
    # Web addresses and file names have no white space inside.
    "See example.com for it. | Or mail a.b@c.de now.",
    # Tokenised text.
    "The cat sat . | The dog did n't .",
    # Other scripts.
    "今日は晴れです。 | 明日は雨？ | はい！ | 「そうです。」 | 彼は言った。",
    "Он пришёл. | Ёлка упала.",
    "Élan vital. | Überall.",
]


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str) -> None:
    expected = case.split(" | ")
    text = case.replace(" | ", "" if "。" in case else " ")
    assert split_sentences(text) == expected


def test_white_space_and_blank_text() -> None:
    assert split_sentences("  It\r\n rained.\t\tWe\u00a0stayed.\n") == ["It rained.", "We stayed."]
    assert split_sentences("") == split_sentences(" \n\t ") == []


@pytest.mark.parametrize("text", ["." * 50_000, "A. " * 20_000, '"' * 50_000, "word " * 20_000])
def test_odd_long_text_takes_linear_time(text: str) -> None:
    assert "".join(split_sentences(text)).replace(" ", "") == text.replace(" ", "")


def test_no_character_is_lost_on_real_prose(data_dir: Path) -> None:
    novels = sorted((data_dir / "text" / "100_english_novels" / "corpus").glob("*.txt"))
    for novel in islice(novels, 0, None, 10):
        text = novel.read_text(encoding="utf-8-sig")[:100_000]
        sentences = split_sentences(text)
        assert " ".join(sentences) == re.sub(r"\s+", " ", text).strip()
        assert len(sentences) > 300
