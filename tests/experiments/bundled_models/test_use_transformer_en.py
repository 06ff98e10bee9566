"""The training of `use_transformer_en`, end to end on a few sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from experiments.bundled_models import use_transformer_en
from experiments.bundled_models.word_vocabulary import VocabularySettings
from tests.experiments.bundled_models.small_trainings import TEXT, run_with_teacher, small_training
from use_st5.models.use_transformer.model import USE_TRANSFORMER_PRESETS
from use_st5.training.optimizers import Adam

VOCABULARY = VocabularySettings(60, 0, 5, pieces="pieces.txt")
SMALL = small_training(
    use_transformer_en.EXPERIMENT,
    TEXT,
    {"short": (1, 4, 5), "long": (5, 9, 12)},
    vocabulary=VOCABULARY,
)


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
    monkeypatch.setitem(USE_TRANSFORMER_PRESETS, "use_transformer_en", shape)


@pytest.mark.end_to_end
def test_trains_exports_and_scores(corpora: Path, tmp_path: Path) -> None:
    scores = run_with_teacher(SMALL, corpora, tmp_path / "run", steps=40)
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    # The run is complete: the same command has nothing left to do.
    assert SMALL.run(corpora, tmp_path / "run", steps=40) == scores


def test_the_settings_of_the_shipped_model() -> None:
    experiment = use_transformer_en.EXPERIMENT
    args = experiment.args
    assert (args.steps, args.evaluation_steps, args.jit_compile) == (14_000, 5_000, False)
    optimizer = args.make_optimizer(14_000)
    assert type(optimizer) is Adam
    assert float(optimizer._learning_rate(1_000)) == pytest.approx(2e-3)
    for task in experiment.tasks[3:5]:
        settings = task.loss().get_config()
        wanted = {"temperature": 0.1, "hint_weight": 1.5, "similarity_weight": 10.0}
        assert settings.items() >= wanted.items()
