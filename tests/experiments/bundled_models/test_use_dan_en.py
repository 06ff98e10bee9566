"""The recipe of the shipped model, end to end on a few sentences."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.bundled_models import use_dan_en
from experiments.bundled_models.teacher_text import TeacherText
from experiments.bundled_models.word_vocabulary import VocabularySettings
from tests.experiments.bundled_models.small_recipes import small_recipe
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer

SMALL = small_recipe(
    use_dan_en.RECIPE,
    TeacherText(novels=10, dialogues=20, captions=40, spans=40),
    {"short": (1, 4, 5), "long": (5, 9, 12)},
    tokenizer=lambda run: NGramTokenizer(run.material.vocabulary(VocabularySettings(60, 40, 5))),
)


def test_trains_exports_and_scores_in_parts_and_at_once(corpora: Path, tmp_path: Path) -> None:
    for part in ("prepare", "train"):
        assert SMALL.run(corpora, tmp_path / "run", steps=40, part=part) == {}
    scores = SMALL.run(corpora, tmp_path / "run", part="export")
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores
    exported = tf.saved_model.load(tmp_path / "run/model")
    vectors = exported(tf.constant(["A man runs.", ""]))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    facts = json.loads((tmp_path / "run/model/use_st5.json").read_text())["metadata"]
    tasks = ["skip_thought", "input_response", "inference", "teacher"]
    assert (facts["seed"], facts["tasks"]) == (0, tasks)
    # Complete: the same command finds everything done.
    assert SMALL.run(corpora, tmp_path / "run", steps=40) == scores


@pytest.mark.end_to_end
def test_without_tasks_the_model_stays_as_drawn(corpora: Path, tmp_path: Path) -> None:
    first, second = (SMALL.run(corpora, tmp_path / name, tasks=()) for name in "ab")
    assert first == second
    assert first != SMALL.run(corpora, tmp_path / "c", tasks=(), seed=1)


def test_what_cannot_be_run_is_refused(corpora: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'translation'"):
        SMALL.run(corpora, tmp_path / "run", tasks=["translation"])
    with pytest.raises(ValueError, match="no such setting: pretrained"):
        SMALL.run(corpora, tmp_path / "run", pretrained=tmp_path)
    (corpora / "stsbenchmark/sts-dev.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"sts-dev\.csv"):
        SMALL.run(corpora, tmp_path / "run", steps=10)


@pytest.mark.end_to_end
def test_a_strategy_gets_the_same_training(corpora: Path, tmp_path: Path) -> None:
    recipe = SMALL.only(["inference"])
    shared = {"steps": 10, "prepared": tmp_path / "prepared"}
    plain = recipe.run(corpora, tmp_path / "plain", **shared)
    assert recipe.run(corpora, tmp_path / "mirrored", strategy="mirrored", **shared) == plain


def test_the_settings_of_the_shipped_model() -> None:
    recipe = use_dan_en.RECIPE
    (stage,) = recipe.stages
    tasks = {task.name: (task.rate, task.batch_size) for task in stage.tasks}
    assert tasks == {
        "skip_thought": (0.02, 128),
        "input_response": (0.05, 512),
        "inference": (0.05, 512),
        "teacher": (0.88, 2048),
    }
    optimizer = stage.optimizer(stage.steps)
    assert stage.steps == 7_000
    assert type(optimizer) is keras.optimizers.Adam
    rates = [float(optimizer._learning_rate(step)) for step in (0, 100, 200, 3_600, 7_000)]
    np.testing.assert_allclose(rates, [0, 2.5e-3, 5e-3, 2.5e-3, 0], atol=1e-8)


def test_the_ablations_rows() -> None:
    rows = use_dan_en.ABLATION.rows
    assert {name: row.tasks for name, row in rows.items()} == {
        "untrained": [],
        "skip_thought": ["skip_thought"],
        "input_response": ["input_response"],
        "inference": ["inference"],
        "three_tasks": ["skip_thought", "input_response", "inference"],
        "with_teacher": ["skip_thought", "input_response", "inference", "teacher"],
    }
    assert use_dan_en.ABLATION.steps == 300
    calibrated = use_dan_en.RECIPE.finished
    assert all(row.finished is not calibrated for row in rows.values())
    whole = {"finished": calibrated, "expected": use_dan_en.RECIPE.expected}
    assert dataclasses.replace(rows["with_teacher"], **whole) == use_dan_en.RECIPE
