"""The recipe of `use_transformer_en`, end to end on a few sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tests.recipes.fake_teacher import fake_teacher

from use_st5.data.word_vocabulary import VocabularySettings
from use_st5.distillation.teacher_text import TeacherText
from use_st5.models.use_transformer.config import USE_TRANSFORMER_PRESETS
from use_st5.recipes import _use_data, _use_training, use_transformer_en
from use_st5.text.ngram_vocabulary import NGramVocabulary


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, corpora: Path) -> None:
    (corpora / "pieces.txt").write_text("[CLS]\nzebra\n##s\n##ing\né\n", encoding="utf-8")
    shape = dataclasses.replace(
        USE_TRANSFORMER_PRESETS["use_transformer_en"],
        embedding_dim=8,
        num_layers=3,
        hidden_dim=16,
        intermediate_dim=16,
        num_heads=2,
    )
    data = dataclasses.replace(
        use_transformer_en.DATA,
        text=TeacherText(
            novels=10, dialogues=20, captions=40, spans=40, related={(5, 9): 12}, hints=True
        ),
        teacher_lengths={"short": (1, 4, 5), "long": (5, 9, 12)},
        vocabulary=VocabularySettings(60, 0, 5, pieces="pieces.txt"),
    )
    training = dataclasses.replace(
        use_transformer_en.TRAINING,
        mixture={name: (1.0, 8) for name in use_transformer_en.TASKS},
        evaluate_every=10,
    )
    monkeypatch.setitem(USE_TRANSFORMER_PRESETS, "use_transformer_en", shape)
    monkeypatch.setattr(use_transformer_en, "DATA", data)
    monkeypatch.setattr(use_transformer_en, "TRAINING", training)
    monkeypatch.setattr(_use_data, "minilm_teacher", fake_teacher)
    monkeypatch.setattr(_use_training, "DECODER_VOCABULARY", 30)


def test_trains_exports_and_scores(corpora: Path, tmp_path: Path) -> None:
    scores = use_transformer_en.run(corpora, tmp_path / "run", steps=40)
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    # Complete: the same command finds everything done.
    assert use_transformer_en.run(corpora, tmp_path / "run", steps=40) == scores


def test_the_vocabulary_holds_words_and_pieces_of_the_file(corpora: Path, tmp_path: Path) -> None:
    use_transformer_en.run(corpora, tmp_path / "run", tasks=())
    unigrams = NGramVocabulary.load(tmp_path / "run/prepared/vocabulary.txt").unigrams
    assert len(unigrams) <= 60
    assert unigrams[-2:] == ("##s", "##ing")
    assert "zebra" in unigrams
    assert not {"[CLS]", "é"} & set(unigrams)


def test_untrained_vectors_are_near_the_words_of_the_teacher(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks begin as almost nothing: words that the teacher confuses, so does the model."""
    vectors = {"dog": [1.0, 0.0], "cat": [1.0, 0.05], "guitar": [0.0, 1.0]}

    def teacher() -> object:
        noise = np.random.default_rng(0)

        def encode(sentences: list[str]) -> np.ndarray:
            rows = noise.normal(scale=0.05, size=(len(sentences), _use_training.DIMENSION))
            for row, sentence in zip(rows, sentences, strict=True):
                row[:2] += vectors.get(sentence, [0.5, 0.5])
            return rows

        return encode

    monkeypatch.setattr(_use_data, "minilm_teacher", teacher)
    use_transformer_en.run(corpora, tmp_path / "run", tasks=())
    exported = tf.saved_model.load(tmp_path / "run/model")
    dog, cat, guitar = exported(tf.constant(["dog", "cat", "guitar"])).numpy()
    assert dog @ cat > dog @ guitar + 0.1


def test_every_sentence_has_a_hint(corpora: Path, tmp_path: Path) -> None:
    prepared, teacher = tmp_path / "prepared", tmp_path / "teacher"
    text = _use_data.UseData(corpora, use_transformer_en.DATA, prepared, teacher)
    assert all("hint" in arrays for arrays in text.parts("related").values())
    hints = text.parts("teacher")["teacher_short"]["hint"]
    layer = fake_teacher(layers=4)([s for s in text.sentences if s.count(" ") < 4])
    # What all hints share is no part of a difference.
    np.testing.assert_allclose(hints - hints[0], layer - layer[0], atol=0.1)


def test_unknown_task(corpora: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'translation'"):
        use_transformer_en.run(corpora, tmp_path / "run", tasks=["translation"])


def test_a_prepared_folder_is_for_one_text(corpora: Path, tmp_path: Path) -> None:
    text = use_transformer_en.DATA.text
    prepared, teacher = tmp_path / "prepared", tmp_path / "teacher"
    first = _use_data.UseData(corpora, use_transformer_en.DATA, prepared, teacher)
    again = _use_data.UseData(corpora, use_transformer_en.DATA, prepared, teacher)
    assert first.sentences == again.sentences
    other = dataclasses.replace(use_transformer_en.DATA, text=dataclasses.replace(text, spans=1))
    with pytest.raises(ValueError, match=r"(?s)other settings.*spans=40.*wanted now.*spans=1\b"):
        _use_data.UseData(corpora, other, prepared, teacher)
