"""USE by its own tasks: weights that learn, weights that stay, and the rows of the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np
import pytest

from experiments.corpus_tasks import Material
from experiments.run import Run
from experiments.use import own_tasks as use_dan_own_tasks
from experiments.use.own_tasks import OwnTasks
from tests.evaluation.toys import BagOfWords
from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer


def _small() -> OwnTasks:
    tasks = (
        dataclasses.replace(
            task,
            batch_size=8,
            loss=lambda made=task.loss, name=task.name: (
                made(vocabulary_size=12) if name == "skip_thought" else made()
            ),
        )
        for task in use_dan_own_tasks.TASKS
    )
    args = dataclasses.replace(OwnTasks().args, evaluation_steps=10, jit_compile=False)
    return OwnTasks(tasks=tuple(tasks), args=args)


def _tokenizer(experiment: OwnTasks, corpora: Path, output: Path) -> NGramTokenizer:
    return experiment.tokenizer(Run(corpora, output), Material(corpora, ()))


def test_the_table_of_words_learns_alone(corpora: Path, tmp_path: Path) -> None:
    scores = _small().run(corpora, tmp_path / "run", steps=20)
    assert set(scores) == {"stsb_dev_pearson", "stsb_dev_spearman"}
    tokenizer = _tokenizer(_small(), corpora, tmp_path / "run")
    keras.utils.set_random_seed(0)
    drawn = use_dan_own_tasks.drawn_model(tokenizer)
    learnt = keras.saving.load_model(tmp_path / "run/encoder.keras", compile=False)
    assert np.abs(learnt.embedding.embeddings - drawn.embedding.embeddings).max() > 1e-4
    for mine, first in zip(learnt.network.weights, drawn.network.weights, strict=True):
        np.testing.assert_array_equal(mine.numpy(), first.numpy())


def test_bigrams_have_a_vocabulary_and_arrays_of_their_own(corpora: Path, tmp_path: Path) -> None:
    """They are in one folder with those of single words, since the table's rows share it."""
    both = use_dan_own_tasks.EXPERIMENT, use_dan_own_tasks.BIGRAMS
    words, pairs = (_tokenizer(each, corpora, tmp_path).vocabulary for each in both)
    assert not words.bigrams
    assert pairs.bigrams
    assert words.unigrams == pairs.unigrams
    parts = [
        {name for task in each.tasks for name in task.data.sources(task.name, None)}
        for each in both
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
