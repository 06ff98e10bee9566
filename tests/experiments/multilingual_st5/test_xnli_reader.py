from __future__ import annotations

from pathlib import Path

import pytest

from experiments.multilingual_st5.xnli_reader import read_xnli
from experiments.nli_reader import NLIReader

LANGUAGES = [
    *("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")
]


def write(path: Path, rows: list[list[str]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


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


def test_a_file_without_labels(tmp_path: Path) -> None:
    file = write(tmp_path / "test-en.tsv", [["p", "c"], ["p", "e"]])
    with pytest.raises(ValueError, match=r"test-en.tsv:1: 2 fields, expected 3"):
        read_xnli({"en": file})


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
