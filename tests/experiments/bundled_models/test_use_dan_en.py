"""The training of the shipped model, end to end on a few sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from experiments.bundled_models import use_dan_en
from tests.experiments.bundled_models.jax_run import SMALL
from tests.experiments.bundled_models.small_trainings import run_with_teacher
from use_st5.training.optimizers import Adam


@pytest.mark.end_to_end
def test_trains_exports_and_scores_in_parts_and_at_once(corpora: Path, tmp_path: Path) -> None:
    for part in ("prepare", "train"):
        assert run_with_teacher(SMALL, corpora, tmp_path / "run", steps=40, part=part) == {}
    scores = SMALL.run(corpora, tmp_path / "run", part="export")
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    facts = json.loads((tmp_path / "run/model/use_st5.json").read_text())["metadata"]
    tasks = ["skip_thought", "input_response", "inference", "teacher", "related", "scored"]
    assert (facts["seed"], facts["tasks"]) == (0, tasks)
    # The run is complete: the same command has nothing left to do.
    assert SMALL.run(corpora, tmp_path / "run", steps=40) == scores


@pytest.mark.process
def test_training_under_jax_needs_no_tensorflow(
    corpora: Path, tmp_path: Path, under_jax: Callable[..., str]
) -> None:
    run = tmp_path / "run"
    run_with_teacher(SMALL, corpora, run, steps=40, part="prepare")
    under_jax("experiments/bundled_models/jax_run.py", run)
    scores = SMALL.run(corpora, run, part="export")
    assert np.isfinite(list(scores.values())).all()
    vectors = tf.saved_model.load(run / "model")(tf.constant(["A man runs.", "The cat eats."]))
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01


def test_the_settings_of_the_shipped_model() -> None:
    experiment = use_dan_en.EXPERIMENT
    assert (experiment.args.steps, experiment.args.evaluation_steps) == (20_000, 5_000)
    optimizer = experiment.args.make_optimizer(20_000)
    assert type(optimizer) is Adam
    rates = [float(optimizer._learning_rate(step)) for step in (0, 500, 1_000, 10_500, 20_000)]
    np.testing.assert_allclose(rates, [0, 2.5e-3, 5e-3, 2.5e-3, 0], atol=1e-8)
