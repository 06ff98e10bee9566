"""The sentences that no training text may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.held_out import held_out_sentences, without_held_out
from use_st5.data import normalized
from use_st5.evaluation.minimal_pairs import minimal_pairs

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


def test_without_sts_sets_nothing_could_be_held_out(corpora: Path) -> None:
    (corpora / "stsbenchmark/sts-dev.csv").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"at least one of STS12-en-test/STS\*\.txt or STS12/"
    ):
        held_out_sentences(corpora)
    assert held_out_sentences(corpora, required=False) == PROBE


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


def test_an_example_goes_with_any_of_its_texts() -> None:
    examples = [
        {"premise": "A.", "hypothesis": "B.", "label": 1},
        {"premise": "b", "hypothesis": "C.", "label": 1},
        {"premise": "D", "hypothesis": "E", "label": 1},
    ]
    assert list(without_held_out(examples, {"b", "1"})) == examples[2:]
