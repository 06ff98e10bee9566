"""The teacher's sentences: distinct, usable, none held out; what it says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from experiments.bundled_models import use_dan_en, use_transformer_en
from experiments.bundled_models.teacher_text import (
    Hints,
    TaughtText,
    TeacherText,
    teacher_sentences,
)
from experiments.bundled_models.word_vocabulary import VocabularySettings
from experiments.minilm import HINT_LAYER, read_questions
from tests.experiments.bundled_models.small_trainings import fake_teacher
from use_st5.data.held_out import normalized
from use_st5.evaluation.held_out import held_out_sentences
from use_st5.vector_store import VectorStore

TEXT = TeacherText(
    novels=10, dialogues=1000, captions=20, spans=30, related={(3, 9): 12}, teacher=fake_teacher
)


def opened(
    corpora: Path, folder: Path, text: TeacherText = TEXT, held_out: Collection[str] = ()
) -> TaughtText:
    return TaughtText(text, corpora, folder / "prepared", folder / "teacher", lambda: held_out)


def test_distinct_and_repeatable(corpora: Path) -> None:
    sentences = teacher_sentences(corpora, TEXT, ())
    assert len(sentences) == len(set(sentences))
    assert sentences == teacher_sentences(corpora, TEXT, ())
    assert "The cat eats." in sentences
    assert all(sentence == " ".join(sentence.split()) for sentence in sentences)


def test_sentences_of_tests_are_held_out_however_they_are_written(corpora: Path) -> None:
    held_out = held_out_sentences(corpora)
    assert len(held_out) == 24 + 1200, "of the STS Benchmark, and of the minimal pairs"
    sentences = teacher_sentences(corpora, TEXT, held_out)
    assert "The cat eats." in sentences
    assert not held_out & {normalized(sentence) for sentence in sentences}
    assert "The cat eats." not in teacher_sentences(corpora, TEXT, {"the cat eats"})


def test_the_smaller_samples_are_parts_of_the_larger_ones(corpora: Path) -> None:
    few = TeacherText(novels=5, dialogues=10, captions=10, spans=0)
    assert set(teacher_sentences(corpora, few, ())) < set(teacher_sentences(corpora, TEXT, ()))
    large, small = use_dan_en.TEXT, use_transformer_en.TEXT
    assert small.novels <= large.novels
    assert small.captions <= large.captions


def test_a_prepared_folder_is_for_one_text(corpora: Path, tmp_path: Path) -> None:
    assert opened(corpora, tmp_path).sentences == opened(corpora, tmp_path).sentences
    other = opened(corpora, tmp_path, dataclasses.replace(TEXT, spans=1))
    with pytest.raises(ValueError, match=r"(?s)other settings.*spans=30.*wanted now.*spans=1\b"):
        _ = other.sentences


def test_the_vocabulary_holds_words_and_pieces_of_the_file(corpora: Path, tmp_path: Path) -> None:
    (corpora / "pieces.txt").write_text("[CLS]\nzebra\n##s\n##ing\né\n", encoding="utf-8")
    settings = VocabularySettings(60, 0, 5, pieces="pieces.txt")
    unigrams = opened(corpora, tmp_path).vocabulary(settings).unigrams
    assert len(unigrams) <= 60
    assert unigrams[-2:] == ("##s", "##ing")
    assert "zebra" in unigrams
    assert not {"[CLS]", "é"} & set(unigrams)
    (corpora / "pieces.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"pieces\.txt"):
        opened(corpora, tmp_path / "other").vocabulary(settings)


def test_where_the_teacher_is_missing_all_questions_are_written(
    corpora: Path, tmp_path: Path
) -> None:
    def missing(**_: object) -> None:
        raise ImportError("pip install teacher")

    text = opened(corpora, tmp_path, dataclasses.replace(TEXT, teacher=missing))
    with pytest.raises(ImportError, match="pip install teacher"):
        text.ask(["word"])
    related = [each for pairs in text.pairs.values() for pair in pairs for each in pair]
    asked = read_questions(tmp_path / "teacher")
    assert asked == list(dict.fromkeys([*text.sentences, *related, "word"]))
    hinted = tmp_path / "teacher" / f"layer_{HINT_LAYER}"
    assert read_questions(hinted) == list(dict.fromkeys(related))
    # Answered elsewhere, nothing is left to ask.
    VectorStore.of_teacher(tmp_path / "teacher").extend(fake_teacher(), asked)
    VectorStore.of_teacher(hinted).extend(fake_teacher(layers=HINT_LAYER), related)
    text.ask(["word"])


def test_hints_of_all_sentences_are_those_of_the_middle_layer(
    corpora: Path, tmp_path: Path
) -> None:
    text = opened(corpora, tmp_path, dataclasses.replace(TEXT, hints=True))
    some = text.sentences[:20]
    hints = np.array([text.hints[each] for each in some])
    layer = fake_teacher(layers=HINT_LAYER)(some)
    # What all hints share is no part of a difference.
    np.testing.assert_allclose(hints - hints[0], layer - layer[0], atol=0.1)


def test_what_the_sample_shares_is_taken_away(tmp_path: Path) -> None:
    rows = {"a": [1.0, 4.0], "b": [3.0, 4.0], "c": [9.0, 0.0]}
    vectors = VectorStore.of_teacher(tmp_path)
    vectors.extend(lambda texts: np.array([rows[text] for text in texts]), rows)
    hints = Hints(vectors, sample=["a", "b"])
    np.testing.assert_array_equal([hints[each] for each in rows], [[-1, 0], [1, 0], [7, -4]])
    assert hints["a"].dtype == np.float32
