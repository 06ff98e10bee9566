"""Pre-training end to end on a few sentences."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.recipes.small_t5 import make_small
from use_st5.data.corpora import running_text
from use_st5.data.pretraining_text import kept_sentences, pretraining_tokens
from use_st5.distillation.teacher_text import held_out_sentences, normalized
from use_st5.recipes import pretrain_t5
from use_st5.text.sentencepiece_vectorizer import SentencePieceVectorizer


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch.setattr)


def test_trains_saves_and_is_done(corpora: Path, tmp_path: Path) -> None:
    untrained = pretrain_t5.run(corpora, tmp_path / "short", steps=10)
    assert pretrain_t5.run(corpora, tmp_path / "run", part="prepare") == {}
    scores = pretrain_t5.run(tmp_path / "nowhere", tmp_path / "run", steps=60, part="train")
    assert scores["validation_loss"] < untrained["validation_loss"]
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    model = keras.saving.load_model(tmp_path / "run" / pretrain_t5.MODEL_NAME)
    logits = model({"encoder_ids": np.ones((1, 4), int), "decoder_ids": np.zeros((1, 1), int)})
    assert logits.shape == (1, 1, 32_128)
    # Complete: the same command finds everything done.
    assert pretrain_t5.run(corpora, tmp_path / "run", steps=60) == scores
    with pytest.raises(FileExistsError, match="checkpoints"):
        pretrain_t5.run(corpora, tmp_path / "run", steps=60, resume=False)


def test_the_text_is_running_and_cut_into_one_length(corpora: Path, tmp_path: Path) -> None:
    vectorizer = SentencePieceVectorizer()
    path = tmp_path / "tokens.npy"
    pieces = pretraining_tokens(corpora, vectorizer, 20, path)
    # The novel comes first, without the sentences that begin and end it.
    sentences = [example["sentence"] for example in running_text(corpora)]
    novel = [s for s in sentences if normalized(s) not in held_out_sentences(corpora)]
    ids = vectorizer.padded(novel).numpy()
    np.testing.assert_array_equal(pieces[0], ids[ids > vectorizer.eos_id][:20])
    with pytest.raises(ValueError, match="pieces of 21 ids, found 20"):
        pretraining_tokens(corpora, vectorizer, 21, path)


def test_sts_sentences_and_repeated_turns_are_left_out() -> None:
    turns = ["One.", "One.", "The CAT eats", "Two.", "One."]
    assert list(kept_sentences(turns, {"the cat eats"})) == ["One.", "Two.", "One."]


def test_what_cannot_be_trained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="T5's vocabulary. Received: 'mt5_small'"):
        pretrain_t5.run(tmp_path, tmp_path, preset="mt5_small")
    with pytest.raises(ValueError, match=r"Unknown part: 'export'. .* \('prepare', 'train'\)"):
        pretrain_t5.run(tmp_path, tmp_path, part="export")
    with pytest.raises(FileNotFoundError, match=r"tokens.npy. .* --part prepare"):
        pretrain_t5.run(tmp_path, tmp_path, part="train")
