"""The recipe of `st5_small_en`, end to end on a few sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tests.recipes.fake_teacher import fake_teacher

from use_st5.distillation.teacher_text import TeacherText
from use_st5.models.t5.config import T5_PRESETS
from use_st5.recipes import _use_data, st5_small_en

pytest.importorskip("tensorflow_text", reason="the extra `text` is not installed")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, corpora: Path) -> None:
    names = "#Q In France, which animal eats food with Jane?\n^ dog\nA cat\nB dog\n"
    (corpora / "qa/opentriviaqa/categories/names").write_text(names * 8, encoding="utf-8")
    (corpora / "oewn_definitions.tsv").write_text(
        "animal\tn\ta living thing\nfood\tn\twhat is eaten\n", encoding="utf-8"
    )
    # Three hypotheses of each kind: triplets, and enough of them for a batch.
    pairs = [
        {"premise": f"The man {verb}.", "hypothesis": f"{who} {verb}.", "label": label}
        for verb in ("runs", "eats", "reads")
        for who, label in (("He", "e"), ("Nobody", "c"), ("A person", "e"), ("No man", "c"))
    ]
    (corpora / "nli/semi_automatic_nli/data/sim_wiki/train.jsonl").write_text(
        "".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8"
    )
    shape = dataclasses.replace(
        T5_PRESETS["st5_small_en"], num_layers=1, hidden_dim=8, intermediate_dim=16, num_heads=1
    )
    data = dataclasses.replace(
        st5_small_en.DATA,
        text=TeacherText(
            novels=10, dialogues=20, captions=40, spans=40, questions=30, related={(5, 9): 12}
        ),
        teacher_lengths={"short": (1, 4, 9), "long": (5, 9, 16)},
    )
    training = dataclasses.replace(
        st5_small_en.TRAINING,
        mixture={name: (1.0, 4) for name in st5_small_en.TASKS},
        evaluate_every=10,
    )
    monkeypatch.setitem(T5_PRESETS, "st5_small_en", shape)
    monkeypatch.setattr(st5_small_en, "DATA", data)
    monkeypatch.setattr(st5_small_en, "TRAINING", training)
    monkeypatch.setattr(_use_data, "minilm_teacher", fake_teacher)


def test_trains_exports_and_scores(corpora: Path, tmp_path: Path) -> None:
    scores = st5_small_en.run(corpora, tmp_path / "run", steps=30)
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    assert vectors.shape == (2, 768)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    facts = json.loads((tmp_path / "run/model/use_st5.json").read_text())
    assert (facts["storage"], facts["max_length"]) == ("int8", st5_small_en.MAX_LENGTH)
    # Complete: the same command finds everything done.
    assert st5_small_en.run(corpora, tmp_path / "run", steps=30) == scores


def test_some_sentences_are_read_in_lowercase(corpora: Path, tmp_path: Path) -> None:
    settings = dataclasses.replace(st5_small_en.DATA, lowercase=0.5)
    text = _use_data.UseData(corpora, settings, tmp_path / "prepared", tmp_path / "teacher")
    rows = text.parts("teacher")["teacher_long"]
    the = text.vectorizer.padded(["The"]).numpy()[0, 0]
    capitals = np.sum(rows["sentence"] == the)
    cased = [s for s in text.sentences if 5 <= len(s.split()) <= 9]
    assert 0 < capitals < sum(s.split().count("The") for s in cased)
