from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.multilingual_st5.xnli_reader import read_xnli
from experiments.nli_reader import NLIReader

LANGUAGES = [
    *("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")
]
HEAD = [
    *("language", "gold_label", "sentence1_binary_parse", "sentence2_binary_parse"),
    *("sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "promptID", "pairID"),
    *("genre", "label1", "match"),
]


def write(path: Path, rows: list[list[str]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def official_rows() -> list[list[str]]:
    """Two prompts in two languages, the German pairs in another order."""
    pairs = [
        ("neutral", "p", "n", "1", "1"),
        ("contradiction", "p", "c", "1", "2"),
        ("entailment", "p", "e", "1", "3"),
        ("contradiction", "p", "C", "2", "4"),
        ("entailment", "p", "E", "2", "5"),
    ]
    return [
        [language, label, "", "", "", "", f"{language} {s1}", f"{language} {s2}", prompt, pair]
        + ["facetoface", label, "True"]
        for language, order in (("en", pairs), ("de", pairs[::-1]))
        for label, s1, s2, prompt, pair in order
    ]


EXPECTED = {
    language: [
        (f"{language} p", f"{language} e", f"{language} c"),
        (f"{language} p", f"{language} E", f"{language} C"),
    ]
    for language in ("en", "de")
}


def test_official_file_by_pair_and_prompt(tmp_path: Path) -> None:
    table = write(tmp_path / "xnli.dev.tsv", [HEAD, *official_rows()])
    assert read_xnli(table).texts == EXPECTED
    objects = tmp_path / "xnli.dev.jsonl"
    lines = [json.dumps(dict(zip(HEAD, row, strict=True))) for row in official_rows()]
    objects.write_text("\n".join(lines) + "\n")
    assert read_xnli(objects).texts == EXPECTED


def test_official_file_that_is_not_parallel(tmp_path: Path) -> None:
    rows = official_rows()
    with pytest.raises(ValueError, match="pairID 1 and 0 more are not in both of 'en' and 'de'"):
        read_xnli(write(tmp_path / "xnli.dev.tsv", [HEAD, *rows[:-1]]))
    with pytest.raises(ValueError, match="pairID 1 occurs twice in 'de'"):
        read_xnli(write(tmp_path / "xnli.dev.tsv", [HEAD, *rows, rows[-1]]))


def test_translated_training_files(tmp_path: Path) -> None:
    head = ["premise", "hypo", "label"]
    rows = [["p", "n", "neutral"], ["q", "c", "contradictory"], ["q", "e", "entailment"]]
    english = write(tmp_path / "multinli.train.en.tsv", [head, *rows])
    german = write(
        tmp_path / "multinli.train.de.tsv", [head, *[[f"{a}!", b, c] for a, b, c in rows]]
    )
    assert read_xnli({"en": english, "de": german}).texts == {
        "en": [("q", "e", "c")],
        "de": [("q!", "e", "c")],
    }
    assert [pair["label"] for pair in NLIReader(english)] == [1, 2, 0]


def test_files_without_a_header_and_labels_of_another_file(tmp_path: Path) -> None:
    test = write(tmp_path / "test-en.tsv", [["p", "c"], ["p", "e"]])
    labels = write(
        tmp_path / "labels.tsv",
        [
            ["sentence1", "sentence2", "gold_label"],
            ["x", "y", "contradiction"],
            ["x", "y", "entailment"],
        ],
    )
    assert read_xnli({"en": test}, labels=labels).texts == {"en": [("p", "e", "c")]}
    with pytest.raises(ValueError, match=r"test-en.tsv:1: 2 fields, expected 3"):
        read_xnli({"en": test})
    longer = write(tmp_path / "test-de.tsv", [["p", "c"]])
    with pytest.raises(ValueError, match=r"test-de.tsv: .* there are labels, 2, found 1"):
        read_xnli({"en": test, "de": longer}, labels=labels)


def test_an_empty_translation_shifts_no_row(tmp_path: Path) -> None:
    rows = [["p", "e", "entailment"], ["p", "c", "contradiction"]]
    more = [["q", "E", "entailment"], ["q", "C", "contradiction"]]
    english = write(tmp_path / "dev-en.tsv", rows + more)
    german = write(tmp_path / "dev-de.tsv", [rows[0], ["p", "", "contradiction"], *more])
    assert read_xnli({"en": english, "de": german}).texts["de"] == [("q", "E", "C")]


def test_a_label_that_is_none(tmp_path: Path) -> None:
    file = write(tmp_path / "dev-en.tsv", [["p", "e", "entails"]])
    with pytest.raises(ValueError, match=r"dev-en.tsv:1: label 'entails'"):
        read_xnli({"en": file})
    with pytest.raises(FileNotFoundError):
        read_xnli({"en": tmp_path / "none.tsv"})


def test_real_files(data_dir: Path) -> None:
    development = read_xnli({each: data_dir / f"xnli/dev-{each}.tsv" for each in LANGUAGES})
    assert (len(development), development.languages) == (830, tuple(LANGUAGES))
    assert development.texts["en"][0] == (
        "And he said, Mama, I'm home.",
        "He told his mom he had gotten home.",
        "He didn't say a word.",
    )
    assert development.texts["de"][0][2] == "Er sagte kein Wort."
    # An epoch has 830 triplets in 15 languages.
    assert development.draw().shape == (15, 830, 3)


def test_real_test_files_with_the_labels_of_the_korean_one(data_dir: Path) -> None:
    test = read_xnli(
        {each: data_dir / f"xnli/test-{each}.tsv" for each in ("en", "zh")},
        labels=data_dir / "kornlu/KorNLI/xnli.test.ko.tsv",
    )
    assert len(test) == 1670
    assert test.texts["en"][0][1:] == (
        "I was so upset that I just started talking to him again.",
        "I havent spoken to him again.",
    )
