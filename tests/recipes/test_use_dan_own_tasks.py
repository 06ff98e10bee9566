"""USE by its own tasks: what learns, what stays as it was drawn, and the rows of the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np

from use_st5.data.corpora import NOVELS
from use_st5.recipes import use_dan_en, use_dan_own_tasks
from use_st5.training.ablation import Ablation
from use_st5.training.recipe import Recipe, Run


def _small() -> Recipe:
    (stage,) = use_dan_own_tasks.RECIPE.stages
    tasks = (
        dataclasses.replace(
            task,
            batch_size=8,
            loss=lambda made=task.loss, name=task.name: (
                made(vocabulary_size=12) if name == "skip_thought" else made()
            ),
        )
        for task in stage.tasks
    )
    stage = dataclasses.replace(
        stage, tasks=tuple(tasks), evaluate_every=10, best=False, options={"jit_compile": False}
    )
    return dataclasses.replace(use_dan_own_tasks.RECIPE, stages=(stage,))


def test_the_table_of_words_learns_alone(corpora: Path, tmp_path: Path) -> None:
    recipe = _small()
    scores = recipe.run(corpora, tmp_path / "run", steps=20)
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    run = Run(recipe, corpora, tmp_path / "run")
    keras.utils.set_random_seed(0)
    drawn = use_dan_en.initial_model(run)
    learnt = keras.saving.load_model(tmp_path / "run/encoder.keras", compile=False)
    assert np.abs(learnt.embedding.embeddings - drawn.embedding.embeddings).max() > 1e-4
    for mine, first in zip(learnt.network.weights, drawn.network.weights, strict=True):
        np.testing.assert_array_equal(mine.numpy(), first.numpy())


def test_the_vocabulary_is_of_what_the_encoder_reads(corpora: Path, tmp_path: Path) -> None:
    run = Run(_small(), corpora, tmp_path / "run")
    run.prepared.mkdir(parents=True)
    words = set(run.vectorizer.vocabulary.unigrams)
    spoken = {word for row in NOVELS.examples(corpora) for word in row["sentence"].split()}
    assert {word.strip(".").lower() for word in spoken} <= {word.lower() for word in words}
    again = Run(_small(), corpora, tmp_path / "run")
    assert again.vectorizer.vocabulary == run.vectorizer.vocabulary


def test_the_rows_of_the_table() -> None:
    table = use_dan_own_tasks.VARIANTS["table"]
    assert isinstance(table, Ablation)
    assert {name: row.tasks for name, row in table.rows.items()} == {
        "untrained": [],
        "skip_thought": ["skip_thought"],
        "input_response": ["input_response"],
        "inference": ["inference"],
        "three_tasks": ["skip_thought", "input_response", "inference"],
        "weighed_untrained": [],
        "weighed_three_tasks": ["skip_thought", "input_response", "inference"],
    }
    assert table.seeds == 3
