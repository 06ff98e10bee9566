from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from tests.losses.fixed_encoder import FixedEncoder, log_softmax, one_id
from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.losses.definition_loss import DefinitionLoss
from use_st5.training.task import Task
from use_st5.training.tensorflow_step import TensorFlowLoop


class NamingEncoder(FixedEncoder):
    """An encoder whose words are rows of a second table."""

    def __init__(self, table: np.ndarray, words: np.ndarray) -> None:
        super().__init__(table)
        self.words = words

    def word_logits(self, vectors: Any) -> Any:
        return ops.matmul(vectors, np.transpose(self.words).astype(np.float32))


def test_equals_the_formula_in_numpy() -> None:
    draw = np.random.default_rng(0)
    table, words = draw.standard_normal((4, 3)), draw.standard_normal((7, 3))
    labels = [6, 0, 2, 2]
    batch = {"definition": one_id(4), "word": np.array(labels, np.int64)}
    value, metrics = DefinitionLoss()(NamingEncoder(table, words), batch)
    logits = table @ words.T
    assert float(value) == pytest.approx(-log_softmax(logits)[np.arange(4), labels].mean(), 1e-5)
    assert float(metrics["accuracy"]) == (logits.argmax(axis=1) == labels).mean()


def test_dropout_acts_in_training_alone() -> None:
    class Dropping(FixedEncoder):
        """Drops everything in training."""

        def __call__(self, ids: Any, training: bool = False) -> Any:
            return super().__call__(ids) * (0.0 if training else 1.0)

        def word_logits(self, vectors: Any) -> Any:
            return vectors

    batch = {"definition": one_id(3), "word": np.arange(3)}
    encoder = Dropping(20 * np.eye(3))
    assert float(DefinitionLoss()(encoder, batch, training=True)[0]) == pytest.approx(np.log(3))
    assert float(DefinitionLoss()(encoder, batch, training=False)[0]) == pytest.approx(0, abs=1e-6)


def definitions() -> Task:
    columns = toy.arrays()
    data = {"definition": columns["sentence"], "word": columns["premise"][:, 0]}
    return Task("definitions", DefinitionLoss(), ArrayData(data), batch_size=16)


def test_an_encoder_without_a_head_is_refused_before_the_first_step() -> None:
    with pytest.raises(ValueError, match="head=True, received ToyEncoder"):
        toy.loop(TensorFlowLoop, toy.ToyEncoder(), [definitions()], keras.optimizers.Adam())
    headless = toy.NamingToy()
    headless.head = None
    with pytest.raises(ValueError, match="received NamingToy"):
        toy.loop(TensorFlowLoop, headless, [definitions()], keras.optimizers.Adam())
