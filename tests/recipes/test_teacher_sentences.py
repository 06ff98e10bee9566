"""The teacher's sentences: distinct, usable, none of an STS set."""

from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.recipes._teacher_sentences import (
    TEACHER_TEXTS,
    TeacherText,
    held_out_sentences,
    normalized,
    teacher_sentences,
)

TEXT = TeacherText(novels=10, dialogues=1000, captions=20, spans=30)


def test_distinct_and_repeatable(corpora: Path) -> None:
    sentences = teacher_sentences(corpora, TEXT)
    assert len(sentences) == len(set(sentences))
    assert sentences == teacher_sentences(corpora, TEXT)
    assert "The cat eats." in sentences
    assert all(sentence == " ".join(sentence.split()) for sentence in sentences)


def test_sts_sentences_are_held_out_however_they_are_written(corpora: Path) -> None:
    held_out = held_out_sentences(corpora)
    assert len(held_out) == 24
    assert not held_out & {normalized(sentence) for sentence in teacher_sentences(corpora, TEXT)}
    (corpora / "stsbenchmark/sts-dev.csv").write_text("g\tf\t1\t1\t5\tTHE CAT, eats!\tx y\n")
    assert "The cat eats." not in teacher_sentences(corpora, TEXT)


def test_without_sts_sets_nothing_could_be_held_out(corpora: Path) -> None:
    (corpora / "stsbenchmark/sts-dev.csv").unlink()
    with pytest.raises(FileNotFoundError, match="STS"):
        teacher_sentences(corpora, TEXT)


def test_the_smaller_samples_are_parts_of_the_larger_ones(corpora: Path) -> None:
    few = TeacherText(novels=5, dialogues=10, captions=10, spans=0)
    assert set(teacher_sentences(corpora, few)) < set(teacher_sentences(corpora, TEXT))
    large, small = TEACHER_TEXTS["use_dan_en"], TEACHER_TEXTS["use_transformer_en"]
    assert small.novels <= large.novels
    assert small.captions <= large.captions
