"""USE by its own tasks: weights that learn, weights that stay, and the rows of the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import keras
import numpy as np

from experiments.corpus_tasks import Material
from experiments.run import Run
from experiments.use import own_tasks as use_dan_own_tasks
from experiments.use.own_tasks import OwnTasks
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
