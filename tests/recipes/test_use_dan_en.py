"""The recipe of the shipped model, end to end on a few sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.recipes.fake_teacher import fake_teacher
from use_st5.recipes import _use_data, _use_training, use_dan_ablation, use_dan_en
from use_st5.recipes._teacher_sentences import TeacherText
from use_st5.recipes._use_vocabulary import VocabularySettings


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataclasses.replace(
        use_dan_en.DATA,
        text=TeacherText(novels=10, dialogues=20, captions=40, spans=40),
        teacher_lengths={"short": (1, 4, 5), "long": (5, 9, 12)},
        vocabulary=VocabularySettings(60, 40, 5),
    )
    training = dataclasses.replace(
        use_dan_en.TRAINING,
        mixture={name: (1.0, 8) for name in use_dan_en.TASKS},
        evaluate_every=10,
        xla=False,  # It takes a minute for these steps; the trainer's own tests compile each loss.
    )
    monkeypatch.setattr(use_dan_en, "DATA", data)
    monkeypatch.setattr(use_dan_en, "TRAINING", training)
    monkeypatch.setattr(_use_data, "minilm_teacher", fake_teacher)
    monkeypatch.setattr(_use_training, "DECODER_VOCABULARY", 30)


def test_trains_exports_and_scores(corpora: Path, tmp_path: Path) -> None:
    scores = use_dan_en.run(corpora, tmp_path / "run", steps=40)
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    # Complete: the same command finds everything done.
    assert use_dan_en.run(corpora, tmp_path / "run", steps=40) == scores


def test_without_tasks_the_model_stays_as_drawn(corpora: Path, tmp_path: Path) -> None:
    first, second = (use_dan_en.run(corpora, tmp_path / name, tasks=()) for name in "ab")
    assert first == second
    assert first != use_dan_en.run(corpora, tmp_path / "c", tasks=(), seed=1)


def test_unknown_task_and_missing_development_set(corpora: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'translation'"):
        use_dan_en.run(corpora, tmp_path / "run", tasks=["translation"])
    (corpora / "stsbenchmark/sts-dev.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"sts-dev\.csv"):
        use_dan_en.run(corpora, tmp_path / "run", steps=10)


def test_ablation_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, int]] = []

    def run(_data: Path, folder: Path, *, seed: int, **_: object) -> None:
        started.append((folder.name, seed))
        folder.mkdir(parents=True)
        (folder / "scores.json").write_text(json.dumps({"pearson": 0.5 + seed / 100}))

    monkeypatch.setattr(use_dan_en, "run", run)
    scores = use_dan_ablation.run(tmp_path, tmp_path / "out", steps=10)
    assert len(started) == 18
    assert scores["inference/pearson"] == pytest.approx(0.51)
    assert "| three_tasks | 51.00 ± 1.00 |" in (tmp_path / "out/table.md").read_text()
    use_dan_ablation.run(tmp_path, tmp_path / "out", steps=10)
    assert len(started) == 18
