"""The teacher's sentences: distinct, usable, none of an STS set."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.recipes import _teacher_sentences
from use_st5.recipes._teacher_sentences import held_out_sentences, normalized, teacher_sentences


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_teacher_sentences, "CAPTIONS", 20)
    monkeypatch.setattr(_teacher_sentences, "SPANS", 30)
    monkeypatch.setattr(_teacher_sentences, "LIMITS", {"novels": 10})


def test_distinct_and_repeatable(corpora: Path) -> None:
    sentences = teacher_sentences(corpora)
    assert len(sentences) == len(set(sentences))
    assert sentences == teacher_sentences(corpora)
    assert "The cat eats." in sentences
    assert all(sentence == " ".join(sentence.split()) for sentence in sentences)


def test_sts_sentences_are_held_out_however_they_are_written(corpora: Path) -> None:
    held_out = held_out_sentences(corpora)
    assert len(held_out) == 24
    assert not held_out & {normalized(sentence) for sentence in teacher_sentences(corpora)}
    (corpora / "stsbenchmark/sts-dev.csv").write_text("g\tf\t1\t1\t5\tTHE CAT, eats!\tx y\n")
    assert "The cat eats." not in teacher_sentences(corpora)


def test_without_sts_sets_nothing_could_be_held_out(corpora: Path) -> None:
    (corpora / "stsbenchmark/sts-dev.csv").unlink()
    with pytest.raises(FileNotFoundError, match="STS"):
        teacher_sentences(corpora)
