"""Short trainings that the backends of Keras must agree on; imports no TensorFlow."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.models.bert.model import BertConfig, SentenceBert
from use_st5.models.t5.model import T5, T5Config
from use_st5.models.t5.sentence_t5 import SentenceT5
from use_st5.training.loop import TrainingLoop
from use_st5.training.optimizers import LinearDecay
from use_st5.training.task import Task

STEPS = 4
CONFIG = T5Config(toy.VOCABULARY, 1, 8, 16, 2, 4)
Loop = type[TrainingLoop]


def two_tasks(kind: Loop, dropout: float = 0.0, **options: Any) -> TrainingLoop:
    """Tasks with heads of their own, clipped gradients, Adam."""
    optimizer = keras.optimizers.Adam(1e-2, epsilon=1e-4, global_clipnorm=0.1)
    tasks = toy.tasks(only=("talk", "nli"))
    return toy.loop(kind, toy.ToyEncoder(dropout), tasks, optimizer, **options)


def cached_decoder(kind: Loop, **options: Any) -> TrainingLoop:
    """Micro-batches in pieces; weights that the vectors do not depend on must not decay."""
    names = ("anchor", "positive", "negative")
    columns = dict(zip(names, toy.arrays().values(), strict=False))
    loss = ContrastiveLoss(temperature=0.5, hard_negatives=True, bidirectional=True)
    encoder = SentenceT5(CONFIG, pooling="decoder", projection_dim=6)
    encoder.build()
    task = Task("pairs", loss, ArrayData(columns), batch_size=16)
    optimizer = keras.optimizers.AdamW(1e-2, epsilon=1e-4, weight_decay=0.5)
    pieces = {"gradient_accumulation_steps": 2, "micro_batch_size": 4}
    return toy.loop(kind, encoder, [task], optimizer, steps_per_execution=1, **pieces, **options)


def span_corruption(kind: Loop, **options: Any) -> TrainingLoop:
    """A whole T5 with Adafactor and a falling rate."""
    model = T5(CONFIG)
    model.build()
    columns = {"inputs": toy.arrays()["sentence"], "targets": toy.arrays()["next"]}
    task = Task("spans", SpanCorruptionLoss(), ArrayData(columns), batch_size=16)
    optimizer = keras.optimizers.Adafactor(LinearDecay(1e-2, STEPS))
    return toy.loop(kind, model, [task], optimizer, **options)


def cached_bert(kind: Loop, **options: Any) -> TrainingLoop:
    """Blocks with the norm last, token types, a Matryoshka loss, and a batch in pieces."""
    config = BertConfig(toy.VOCABULARY, 1, 8, 16, 2, separator_id=3, dropout=0, attention_dropout=0)
    encoder = SentenceBert(config, pooling="max", normalize=True)
    encoder.build()
    arrays = toy.arrays()
    columns = {"anchor": arrays["sentence"], "positive": arrays["next"]}
    loss = MatryoshkaLoss(ContrastiveLoss(temperature=0.5, bidirectional=True), dimensions=(8, 4))
    task = Task("pairs", loss, ArrayData(columns), batch_size=16)
    optimizer = keras.optimizers.Adam(1e-2, epsilon=1e-4)
    return toy.loop(
        kind, encoder, [task], optimizer, steps_per_execution=2, micro_batch_size=8, **options
    )


CASES = {case.__name__: case for case in (two_tasks, cached_decoder, cached_bert, span_corruption)}


def weights(trainer: TrainingLoop) -> list[np.ndarray]:
    """All trained weights, those of the heads too."""
    return [variable.numpy() for variable in trainer._trainable_variables()]
