"""Corpora, the sentences of each source, inference files, and what is held out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.corpora import CORPORA, NOVELS, dialogue_pairs
from experiments.corpus_sentences import sentences_by_source
from experiments.held_out import held_out_sentences, without_held_out
from experiments.multilingual_st5.language_triplets import ParallelTriplets, parallel_triplets
from experiments.nli_reader import nli_pairs, read_nli
from experiments.paper_corpora import SNLI, paper_definitions, paper_pairs
from tests.corpora_folder import write_paper_corpora
from use_st5.data import normalized
from use_st5.evaluation.minimal_pairs import minimal_pairs

KEYS = {
    "100_english_novels": {"previous", "sentence", "next"},
    "wikitext_2": {"sentence"},
    "sgd_dialogues": {"input", "response"},
    "self_dialogue": {"input", "response"},
    "ling_in_loop": {"premise", "hypothesis", "label"},
    "semi_automatic_nli": {"premise", "hypothesis", "label"},
    "cad_snli": {"premise", "hypothesis", "label"},
    "conjnli": {"premise", "hypothesis", "label"},
    "medquad": {"anchor", "positive"},
    "oewn": {"word", "part_of_speech", "definition", "example"},
    "wordset": {"word", "part_of_speech", "definition", "example"},
}


@pytest.mark.parametrize("name", KEYS)
def test_a_corpus_gives_what_it_says(corpora: Path, name: str) -> None:
    assert set(next(CORPORA[name].examples(corpora))) == KEYS[name]
    assert {*CORPORA[name].what.split(": ")[1].split(", ")} <= KEYS[name]


def test_a_missing_corpus_is_named(corpora: Path) -> None:
    (corpora / "self_dialogue.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"open dialogues.*self_dialogue\.jsonl"):
        dialogue_pairs(corpora)
    with pytest.raises(FileNotFoundError, match="expected a folder with data sets"):
        NOVELS.examples(corpora / "nowhere")


def test_every_source_gives_its_sentences(corpora: Path) -> None:
    found = {name: list(read()) for name, read in sentences_by_source(corpora).items()}
    assert found["definitions"] == ["a kind of animal", "another animal"]
    assert found["words"] == ["dog", "cat"]
    assert found["examples"] == ["The cat eats."]
    assert found["medical"] == ["Who eats?", "I. You."]
    assert found["trivia"] == ["Who eats food?"]
    assert found["stack_exchange"] == ["Which ball?", "The man's ball."]
    assert found["wikitext"] == ["A dog, a-cat, runs."]
    assert len(found["novels"]) == 70  # the first and the last sentence lack a neighbour
    assert len(found["tasks"]) == 2 * 12 * 5
    assert (len(found["films"]), len(found["talk"])) == (0, 12 * 6)
    assert len(found["inference"]) == 2 * (12 + 12 + 1 + 1)


TXT_HEAD = (
    "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
    "sentence2_parse\tsentence1\tsentence2\tcaptionID\tpairID\tlabel1\tlabel2\n"
)

TXT_ROW = 'neutral\t( a )\t( b )\t(R)\t(R)\tHe says "go\tShe sings\t1.jpg#0\t1n\tneutral\t\n'


def test_pairs_of_both_corpora_without_those_that_have_no_label(tmp_path: Path) -> None:
    write_paper_corpora(tmp_path)
    read = [*paper_pairs(tmp_path)]
    assert [pair["label"] for pair in read] == [0, 1, 2] * 2
    assert read[0] == {"premise": "A man runs.", "hypothesis": "A man moves.", "label": 0}


def test_the_txt_is_read_where_there_is_no_jsonl(tmp_path: Path) -> None:
    write_paper_corpora(tmp_path)
    folder = tmp_path / "snli_1.0"
    (folder / "snli_1.0_train.txt").write_text(TXT_HEAD + TXT_ROW)
    assert len([*SNLI.examples(tmp_path)]) == 3, "of the two formats one"
    (folder / "snli_1.0_train.jsonl").unlink()
    assert [*SNLI.examples(tmp_path)] == [
        {"premise": 'He says "go', "hypothesis": "She sings", "label": 1}
    ]


def test_definitions_are_joined_as_defsent_joins_them(tmp_path: Path) -> None:
    """Words lose the number of their sense; the three parts are read, but not the example files."""
    write_paper_corpora(tmp_path)
    assert {(each["word"], each["definition"]) for each in paper_definitions(tmp_path)} == {
        ("guitar", "music that one plays (a Fine kind); music."),
        ("dog", "an animal that runs, eats, and barks"),
        ("dog", "a ’bad’ person's name"),
        ("old dog", "another person"),
    }


LANGUAGES = tuple(
    ["ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh"]
)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


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


PROBE = {normalized(text) for items in minimal_pairs().values() for item in items for text in item}


def test_test_texts_of_transfer_tasks_are_held_out_and_training_texts_are_not(
    corpora: Path,
) -> None:
    (corpora / "TREC").mkdir()
    (corpora / "TREC/train_5500.label").write_text("HUM:ind Who was the first?\n")
    (corpora / "TREC/TREC_10.label").write_text("NUM:dist How far is the moon ?\n")
    (corpora / "MPQA").mkdir()
    (corpora / "MPQA/mpqa.pos").write_text("good\nvery much in favour\n")
    before = held_out_sentences(corpora)
    assert {"how far is the moon", "very much in favour"} <= before
    assert not {"who was the first", "good"} & before
    of_sets = before - PROBE
    assert len(of_sets) == 24 + 2, "two texts of each of the 12 pairs of the STS Benchmark"


def test_the_sentences_of_the_minimal_pairs_are_always_held_out(
    corpora: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for folder, required in ((corpora, True), (tmp_path / "empty", False)):
        held_out = held_out_sentences(folder, required=required)
        assert held_out >= PROBE
    assert len(PROBE) == 1200
    training_text = [{"text": "Lisa lent Ben a BICYCLE"}, {"text": "Lisa lent Ben a ladder."}]
    assert [*without_held_out(training_text, held_out)] == training_text[1:]
