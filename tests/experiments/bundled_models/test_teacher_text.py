"""The teachers' sentences: distinct, usable, none held out; and the teachers' vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from experiments.bundled_models.teacher import HINT_DIM, TEACHER_DIM, Teacher
from experiments.bundled_models.teacher_text import TEXT as WHOLE
from experiments.bundled_models.teacher_text import (
    Sample,
    TeacherText,
    TextWithVectors,
    related_pairs,
    teacher_sentences,
)
from experiments.bundled_models.word_vocabulary import VocabularySettings
from experiments.held_out import held_out_sentences
from tests.experiments.bundled_models.small_trainings import TEXT, fake_teacher
from use_st5.data.text_hashes import normalized


def opened(
    corpora: Path, folder: Path, text: TeacherText = TEXT, held_out: Collection[str] = ()
) -> TextWithVectors:
    teacher = Teacher(folder / "teacher")
    return TextWithVectors(text, corpora, folder / "prepared", teacher, lambda: held_out)


def flat(sources: dict[str, list[str]]) -> list[str]:
    return [text for texts in sources.values() for text in texts]


def test_distinct_and_repeatable(corpora: Path) -> None:
    sources = teacher_sentences(corpora, TEXT, ())
    assert list(sources) == [*TEXT.sources, "spans"]
    sentences = flat(sources)
    assert len(sentences) == len(set(sentences))
    assert sources == teacher_sentences(corpora, TEXT, ())
    assert sources["examples"] == ["The cat eats."]
    assert len(sources["novels"]) == 10
    assert all(sentence == " ".join(sentence.split()) for sentence in sentences)


def test_a_sample_has_lengths(corpora: Path) -> None:
    text = TeacherText(sources={"novels": Sample(None, fewest=4, most=5)})
    found = teacher_sentences(corpora, text, ())["novels"]
    assert {len(sentence.split()) for sentence in found} == {4, 5}


def test_sts_sentences_are_held_out_however_they_are_written(corpora: Path) -> None:
    held_out = held_out_sentences(corpora)
    sentences = flat(teacher_sentences(corpora, TEXT, held_out))
    assert "The cat eats." in sentences
    assert not held_out & {normalized(sentence) for sentence in sentences}
    assert "The cat eats." not in flat(teacher_sentences(corpora, TEXT, {"the cat eats"}))


def test_spans_are_cut_from_the_sentences_that_are_kept(corpora: Path) -> None:
    text = TeacherText(sources={"novels": Sample(3)}, spans=40, span_sources=("novels",))
    sources = teacher_sentences(corpora, text, ())
    assert sources["spans"]
    assert all(any(span in novel for novel in sources["novels"]) for span in sources["spans"])


def test_alterations_are_of_the_named_sources_and_lengths(corpora: Path) -> None:
    sources = teacher_sentences(corpora, TEXT, ())
    ((fewest, most, pairs),) = related_pairs(sources, TEXT, ())
    assert (fewest, most, len(pairs)) == (5, 9, 12)
    assert {first for first, _ in pairs} <= set(sources["captions"])
    assert all(5 <= len(first.split()) <= 9 for first, _ in pairs)


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
    assert {"zebra", "mr"} & set(unigrams) == {"zebra"}
    assert "ball" in unigrams  # From the corpora, not from the text.
    assert not {"[CLS]", "é"} & set(unigrams)
    (corpora / "pieces.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"pieces\.txt"):
        opened(corpora, tmp_path / "other").vocabulary(settings)


def test_bigrams_are_of_the_training_text_alone(corpora: Path) -> None:
    settings = VocabularySettings(10, 5, 5)
    vocabulary = settings.build(corpora, ["red fox", "red fox"], ["blue bird"] * 9)
    assert vocabulary.bigrams == ("red fox",)
    assert {"red", "fox", "blue", "bird"} == set(vocabulary.unigrams)


def test_all_vectors_must_be_there(corpora: Path, tmp_path: Path) -> None:
    text = opened(corpora, tmp_path)
    asked = {*text.sentences, *(second for pairs in text.pairs.values() for _, second in pairs)}
    with pytest.raises(FileNotFoundError, match=rf"of {len(asked) + 1} texts"):
        text.check(["word"])
    with pytest.raises(FileNotFoundError, match="of 1 texts"):
        text.check(["word"], sentences=False)
    with pytest.raises(FileNotFoundError):
        text.check(["word"])
    Teacher(tmp_path / "teacher").answer(fake_teacher)
    text = opened(corpora, tmp_path)
    text.check(["word"])
    some = text.sentences[:20]
    rows = fake_teacher(some)
    np.testing.assert_allclose(text.vectors(some)[:, :5], rows[:, :5], rtol=0.01, atol=0.01)
    numbers = np.array([text.numbers[each] for each in some])
    found = text.answers(numbers, hints=True)
    np.testing.assert_array_equal(found["teacher"], text.vectors(some))
    assert set(text.answers(numbers, hints=False)) == {"teacher"}
    # The mean is subtracted from all hints, which changes no difference between two hints.
    hints, layer = found["hint"], rows[:, TEACHER_DIM:]
    assert hints.shape == (20, HINT_DIM)
    np.testing.assert_allclose(hints - hints[0], layer - layer[0], atol=0.1)
    every = text.answers(np.arange(len(asked)), hints=True)["hint"]
    assert np.abs(every.mean(axis=0)).max() < 0.1


def test_the_text_of_the_shipped_models() -> None:
    assert {"sts_train", "inference", "opinions", "questions"} <= set(WHOLE.sources)
    assert set(WHOLE.related_sources) | set(WHOLE.span_sources) <= set(WHOLE.sources)
