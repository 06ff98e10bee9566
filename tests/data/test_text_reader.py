"""Running text: the reader of files, and the rules that split it into sentences."""

from __future__ import annotations

import gzip
import re
from itertools import islice
from pathlib import Path

import pytest

from use_st5.data.text_reader import TextReader, short_line, split_sentences

WRAPPED = """\
CHAPTER I

It was the best of times and it was the worst of times, or so
they said. Nobody knew which of the two it was, and as for the
rest of us, we did not care.

"Do you?" asked the man who had been standing in the corner all
the while. He went on without waiting
for Mr.
Brown.
"""
LINES = "First one. Second one.\nThird one! Fourth one?\n\nFifth.\n"


def triples(reader: TextReader) -> list[tuple[str, str, str]]:
    return [(each["previous"], each["sentence"], each["next"]) for each in reader]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_wrapped_lines_are_joined(tmp_path: Path) -> None:
    assert list(TextReader(write(tmp_path / "a.txt", WRAPPED)).sentences()) == [
        "CHAPTER I",
        "It was the best of times and it was the worst of times, or so they said.",
        "Nobody knew which of the two it was, and as for the rest of us, we did not care.",
        '"Do you?" asked the man who had been standing in the corner all the while.',
        "He went on without waiting for Mr. Brown.",
    ]


def test_a_line_may_be_a_paragraph(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", LINES)
    assert list(TextReader(path).sentences()) == [
        "First one.",
        "Second one.",
        "Third one!",
        "Fourth one?",
        "Fifth.",
    ]


def test_wrapped_without_blank_lines_ends_paragraphs_at_short_lines(tmp_path: Path) -> None:
    start = "Some words that fill a line of the usual width and"
    middle = ["and on and on and on and on and on and on and on"] * 3
    paragraph = [start, *middle, "a short one", "in between", "to an end"]
    path = write(tmp_path / "a.txt", "\n".join([*paragraph, "A Heading", *paragraph * 20]))
    sentences = list(TextReader(path).sentences())
    assert sentences[1] == "A Heading"
    assert len(sentences) == 22
    assert set(sentences) - {"A Heading"} == {" ".join(paragraph)}


def test_triples_reach_over_paragraphs_and_not_over_files(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "A one. A two.\nA three. A four. A five.\n")
    write(tmp_path / "b.txt", "B one.\nB two.\nB three.\n")
    assert triples(TextReader(tmp_path)) == [
        ("A one.", "A two.", "A three."),
        ("A two.", "A three.", "A four."),
        ("A three.", "A four.", "A five."),
        ("B one.", "B two.", "B three."),
    ]


def test_layout_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "one two\nthree four.\n\nfive.\n")
    assert list(TextReader(path, layout="lines").sentences()) == ["one two", "three four.", "five."]
    assert list(TextReader(path, layout="wrapped").sentences()) == ["one two three four.", "five."]


def test_one_short_sentence_per_line_is_not_wrapped_text() -> None:
    assert short_line(["i like it.", "so do i.", "why is that?"] * 50) is None
    long = "and then i told him that we would all be there by eight o'clock."
    assert short_line([long, "yes."] * 50) is None
    assert short_line(["a title", "Another", "Yet Another One"] * 50) is None
    assert short_line([]) is None


def test_windows_1252_and_mixed_files_are_read_and_noted(tmp_path: Path) -> None:
    raw = (
        "It’s caf\u00e9. “Yes.”\n".encode("cp1252")
        + "It’s caf\u00e9 too.\n".encode()
        + b"A \x81 b.\n"
    )
    reader = TextReader(write(tmp_path / "a.txt", raw))
    assert list(reader.sentences()) == [
        "It’s caf\u00e9.",
        "“Yes.”",
        "It’s caf\u00e9 too.",
        "A \x81 b.",
    ]
    assert reader.report.notes == {"line decoded as windows-1252": 2}


def test_bom_crlf_gzip_and_folders(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "b.txt.gz", gzip.compress("\ufeffOne.\r\n\r\nTwo.\r\n".encode()))
    write(tmp_path / "a.txt", "Zero.\n")
    write(tmp_path / "readme.md", "Not this.\n")
    reader = TextReader(tmp_path)
    assert list(reader.sentences()) == ["Zero.", "One.", "Two."]
    assert (reader.report.rows, reader.report.examples) == (3, 3)


def test_sentences_without_a_letter_or_digit_are_dropped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "* * *\nOne. . . .\n--\n\u4eca\u65e5\u3002\n")
    assert list(TextReader(path).sentences()) == ["One. . . .", "\u4eca\u65e5\u3002"]


def test_nothing_to_read(tmp_path: Path) -> None:
    empty = write(tmp_path / "a.txt", "\n * \n")
    with pytest.raises(ValueError, match=r"a\.txt: expected running text, found no sentence"):
        list(TextReader(empty))
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError, match=r"expected \*\.txt or \*\.txt\.gz files"):
        TextReader(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match="expected a file"):
        TextReader(tmp_path / "none.txt")
    with pytest.raises(ValueError, match="layout: expected 'auto', 'wrapped' or 'lines'"):
        TextReader(empty, layout="poem")


def test_triples_are_consecutive_sentences_of_real_prose(data_dir: Path) -> None:
    novel = data_dir / "text" / "100_english_novels" / "corpus" / "Dickens_Oliver_1839.txt"
    sentences = list(TextReader(novel).sentences())
    reader = TextReader(novel)
    assert triples(reader) == list(zip(sentences, sentences[1:], sentences[2:], strict=False))
    assert 8_000 < len(sentences) < 12_000
    # Most lines of a wrapped novel start in mid-sentence, but most sentences of joined paragraphs
    # must not.
    small = sum(sentence[0].islower() for sentence in sentences)
    assert small < 0.01 * len(sentences)


def test_a_line_that_is_too_long_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("use_st5.data.text_reader.LONGEST_ROW", 100)
    path = tmp_path / "a.txt"
    path.write_text("It rained. " * 20 + "\nShe left. He stayed.\n")
    reader = TextReader(path)
    assert list(reader.sentences()) == ["She left.", "He stayed."]
    assert reader.report.offences == [f"{path}:1: a line of more than 100 bytes"]
    path.write_text("It rained. " * 20)
    with pytest.raises(
        ValueError, match=r"no sentence. Malformed: .*a\.txt:1: a line of more than"
    ):
        list(TextReader(path))


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
