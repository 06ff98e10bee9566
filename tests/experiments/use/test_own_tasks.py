"""USE by its own tasks: what learns, what stays as it was drawn, and the rows of the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np
import pytest

from experiments.ablation import Ablation
from experiments.bundled_models import use_dan_en
from experiments.corpora import NOVELS
from experiments.use import own_tasks as use_dan_own_tasks
from tests.evaluation.toys import BagOfWords
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
    words = set(run.tokenizer.vocabulary.unigrams)
    spoken = {word for row in NOVELS.examples(corpora) for word in row["sentence"].split()}
    assert {word.strip(".").lower() for word in spoken} <= {word.lower() for word in words}
    again = Run(_small(), corpora, tmp_path / "run")
    assert again.tokenizer.vocabulary == run.tokenizer.vocabulary


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
        "unfrozen_three_tasks": ["skip_thought", "input_response", "inference"],
        "bigrams_untrained": [],
        "bigrams_three_tasks": [
            "skip_thought_bigrams",
            "input_response_bigrams",
            "inference_bigrams",
        ],
    }
    assert table.seeds == 3
    assert table.further is use_dan_own_tasks.further_scores


def test_unfrozen_layers_have_a_learning_rate_of_their_own() -> None:
    frozen, unfrozen = (
        recipe.stages[0] for recipe in (use_dan_own_tasks.RECIPE, use_dan_own_tasks.UNFROZEN)
    )
    assert [*frozen.freeze(None)] == ["encoder"]
    assert [*unfrozen.freeze(None)] == []
    peaks = [float(stage.optimizer(1_000)._learning_rate(100)) for stage in (frozen, unfrozen)]
    np.testing.assert_allclose(peaks, [1e-3, 1e-4])


def test_bigrams_have_a_vocabulary_and_arrays_of_their_own(corpora: Path, tmp_path: Path) -> None:
    """In one folder with those of the words alone, as the rows of the table share it."""
    words, pairs = (
        Run(recipe, corpora, tmp_path / "run")
        for recipe in (use_dan_own_tasks.RECIPE, use_dan_own_tasks.BIGRAMS)
    )
    words.prepared.mkdir(parents=True)
    vocabularies = [run.tokenizer.vocabulary for run in (words, pairs)]
    assert not vocabularies[0].bigrams
    assert vocabularies[1].bigrams
    assert vocabularies[0].unigrams == vocabularies[1].unigrams
    parts = [
        {name for task in run.recipe.stages[0].tasks for name in task.data.sources(task.name, run)}
        for run in (words, pairs)
    ]
    assert not parts[0] & parts[1]


def test_further_scores_are_of_the_sets_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use_dan_own_tasks, "SentenceEncoder", lambda model: BagOfWords())
    assert use_dan_own_tasks.further_scores(tmp_path, tmp_path) == {}
    folder = tmp_path / "stsbenchmark"
    folder.mkdir()
    rows = [("A man eats.", "A man eats.", 5), ("A man eats.", "Dogs run.", 0), ("A b.", "A c.", 3)]
    text = "".join(f"g\tf\t1\t{n}\t{s}\t{a}\t{b}\n" for n, (a, b, s) in enumerate(rows))
    (folder / "sts-test.csv").write_text(text)
    scores = use_dan_own_tasks.further_scores(tmp_path, tmp_path)
    assert scores == {"stsb": pytest.approx(1.0)}
