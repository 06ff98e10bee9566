"""The sentences that no training text may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.evaluation.held_out import held_out_sentences


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
    assert len(before) == 24 + 2, "two texts of each of the 12 pairs of the STS Benchmark"


def test_without_sts_sets_nothing_could_be_held_out(corpora: Path) -> None:
    (corpora / "stsbenchmark/sts-dev.csv").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"at least one of STS12-en-test/STS\*\.txt or STS12/"
    ):
        held_out_sentences(corpora)
    assert held_out_sentences(corpora, required=False) == set()
