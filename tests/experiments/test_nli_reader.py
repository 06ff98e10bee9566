"""Natural language inference in the formats of its publishers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.multilingual_st5.language_triplets import ParallelTriplets, parallel_triplets
from experiments.nli_reader import nli_pairs, read_nli

# The official column orders of the two releases.
SNLI_TXT = (
    "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
    "sentence1\tsentence2\tcaptionID\tpairID\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5"
)
MNLI_GLUE = "index\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label"
LANGUAGES = (
    "ar",
    "bg",
    "de",
    "el",
    "en",
    "es",
    "fr",
    "hi",
    "ru",
    "sw",
    "th",
    "tr",
    "ur",
    "vi",
    "zh",
)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def row(premise: Any, hypothesis: str, label: Any) -> str:
    return json.dumps({"premise": premise, "hypothesis": hypothesis, "label": label})


def snli(premise: str, hypothesis: str, label: str) -> str:
    return json.dumps({"sentence1": premise, "sentence2": hypothesis, "gold_label": label})


def test_rows_of_snli_without_a_gold_label_or_a_text_are_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path / "snli.jsonl",
        snli("A man sleeps.", "He rests.", "entailment"),
        snli("A man sleeps.", "He runs.", "-"),
        snli("  ", "He runs.", "neutral"),
        "",
        snli("A man sleeps.", "He runs.", "contradiction"),
    )
    assert list(read_nli([path])) == [
        {"premise": "A man sleeps.", "hypothesis": "He rests.", "label": 0},
        {"premise": "A man sleeps.", "hypothesis": "He runs.", "label": 2},
    ]


def test_snli_txt_keeps_quotes_and_trailing_empty_fields(tmp_path: Path) -> None:
    path = write(
        tmp_path / "snli.txt",
        SNLI_TXT,
        'neutral\t(a)\t(b)\t(R)\t(R)\tHe says "go\tShe said "so"\t1.jpg\t1n\tneutral\t\t\t\t',
        'entailment\t(a)\t(b)\t(R)\t(R)\t"Up!"\tD\t2.jpg\t2e\tentailment',
    )
    assert list(read_nli([path])) == [
        {"premise": 'He says "go', "hypothesis": 'She said "so"', "label": 1},
        {"premise": '"Up!"', "hypothesis": "D", "label": 0},
    ]


def test_glue_tsv_takes_the_gold_label_not_label1(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.tsv", MNLI_GLUE, "0\t1n\tfiction\tP\tH\tneutral\tcontradiction")
    assert list(read_nli([path])) == [{"premise": "P", "hypothesis": "H", "label": 2}]


def test_bom_crlf_and_capital_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "\ufeffPremise\tHypothesis\tLabel\r", "Première\tH\tneutral\r")
    assert list(read_nli([path])) == [{"premise": "Première", "hypothesis": "H", "label": 1}]


@pytest.mark.parametrize(
    ("value", "label"), [("e", 0), ("c", 2), (0, 0), (2, 2), ("Entailment", 0), (" neutral ", 1)]
)
def test_labels(tmp_path: Path, value: Any, label: int) -> None:
    path = write(tmp_path / "a.jsonl", row("p", "h", value))
    assert [example["label"] for example in read_nli([path])] == [label]


@pytest.mark.parametrize("bad", [row("p", "h", 3), row("p", "h", ["e"]), row(3, "h", "e"), "{}"])
def test_a_row_of_another_kind_is_named(tmp_path: Path, bad: str) -> None:
    path = write(tmp_path / "a.jsonl", row("p", "h", "e"), bad)
    with pytest.raises(ValueError, match=r"a\.jsonl: .* row 2"):
        list(read_nli([path]))


def triplets(files: dict[str, Path]) -> ParallelTriplets:
    return parallel_triplets({language: [*nli_pairs(file)] for language, file in files.items()})


def test_an_empty_translation_shifts_no_row(tmp_path: Path) -> None:
    rows = ["p\te\tentailment", "p\tc\tcontradiction", "q\tE\tentailment", "q\tC\tcontradictory"]
    english = write(tmp_path / "dev-en.tsv", *rows)
    german = write(tmp_path / "dev-de.tsv", rows[0], "p\t\tcontradiction", *rows[2:])
    assert triplets({"en": english, "de": german}).texts["de"] == [("q", "E", "C")]


def test_xnli_as_published(data_dir: Path) -> None:
    development = triplets({each: data_dir / f"xnli/dev-{each}.tsv" for each in LANGUAGES})
    assert (len(development), development.languages) == (830, LANGUAGES)
    assert development.texts["en"][0] == (
        "And he said, Mama, I'm home.",
        "He told his mom he had gotten home.",
        "He didn't say a word.",
    )
    assert development.texts["de"][0][2] == "Er sagte kein Wort."
    # An epoch has 830 triplets in 15 languages.
    assert development.draw().shape == (15, 830, 3)


# Rows by file, as published (the README of each corpus).
REAL = {
    "cad_snli/NLI/all_combined/train.tsv": 8330,
    "conjnli/adversarial_train_15k.tsv": 15000,
    "mnli_dev/val.jsonl": 9815,
    "semi_automatic_nli/data/sim_wiki/train.jsonl": 6174,
    "ling_in_loop/NLI_data/3_Ling_in_loop_protocol/train_round5_LitL.jsonl": 2999,
    "taxinli/taxinli10k_MNLIDev.tsv": 7727,
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(data_dir: Path, name: str) -> None:
    labels = [example["label"] for example in read_nli([data_dir / "nli" / name])]
    assert (set(labels), len(labels)) == ({0, 1, 2}, REAL[name])
