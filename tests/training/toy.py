"""A tiny encoder and tiny data: the tests of the trainer stand on their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from use_st5.data.arrays import ArrayData
from use_st5.losses.classification_loss import ClassificationLoss
from use_st5.losses.input_response_loss import InputResponseLoss
from use_st5.losses.skip_thought_loss import SkipThoughtLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.training.arguments import TrainingArguments
from use_st5.training.task import Task

ROWS, LENGTH, VOCABULARY, DIMENSION, TEACHER = 64, 5, 30, 8, 6


class ToyEncoder(keras.Model):
    """Mean of embeddings, dense layer, unit length: ids `[batch, length]` → `[batch, 8]`."""

    dimension = DIMENSION

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = keras.layers.Embedding(VOCABULARY, DIMENSION)
        self.dropout = keras.layers.Dropout(dropout)
        self.dense = keras.layers.Dense(DIMENSION, activation="tanh")
        self.table.build((None, None))
        self.dense.build((None, DIMENSION))
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        counted = ops.cast(ids > 0, "float32")[..., None]
        mean = ops.sum(self.table(ids) * counted, axis=1) / ops.maximum(
            ops.sum(counted, axis=1), 1.0
        )
        x = self.dense(self.dropout(mean, training=training))
        return x / ops.sqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + 1e-12)


class NamingToy(ToyEncoder):
    """The toy with its own table as the head that names words."""

    def word_logits(self, vectors: Any) -> Any:
        return ops.matmul(vectors, ops.transpose(self.table.embeddings))


class PairToy(ToyEncoder):
    """One number for the ids of a pair: `[batch, length]` → `[batch, 1]`."""

    dimension = 1

    def call(self, ids: Any, training: bool = False) -> Any:
        return 3 * ops.sum(super().call(ids, training=training), axis=-1, keepdims=True)


def arrays(rows: int = ROWS, seed: int = 0) -> dict[str, np.ndarray]:
    """Columns for all four losses; ids end in padding."""
    rng = np.random.default_rng(seed)

    def ids() -> np.ndarray:
        drawn = rng.integers(1, VOCABULARY, (rows, LENGTH)).astype(np.int32)
        lengths = rng.integers(1, LENGTH + 1, (rows, 1))
        return np.where(np.arange(LENGTH) < lengths, drawn, 0).astype(np.int32)

    names = ("sentence", "previous", "next", "input", "response", "premise", "hypothesis")
    columns: dict[str, np.ndarray] = {name: ids() for name in names}
    columns["label"] = rng.integers(0, 3, rows).astype(np.int32)
    columns["teacher"] = rng.standard_normal((rows, TEACHER)).astype(np.float32)
    return columns


def losses() -> dict[str, Any]:
    """The four losses in toy sizes."""
    return {
        "text": SkipThoughtLoss(vocabulary_size=20, hidden_dim=8, num_heads=2, intermediate_dim=16),
        "talk": InputResponseLoss(hidden_dims=(8,)),
        "nli": ClassificationLoss(hidden_dims=(8,)),
        "teacher": TeacherLoss(teacher_dim=TEACHER, similarity_weight=1.0, ranking_weight=0.1),
    }


def tasks(batch_size: int = 16, only: tuple[str, ...] = ()) -> list[Task]:
    """The four tasks, or those named, over the same toy data."""
    data = ArrayData(arrays())
    return [
        Task(name, loss, data, mixing_weight=1.0, batch_size=batch_size)
        for name, loss in losses().items()
        if not only or name in only
    ]


def loop(
    kind: Any,
    encoder: keras.Model,
    tasks: Sequence[Task],
    optimizer: keras.optimizers.Optimizer,
    **options: Any,
) -> Any:
    """A loop without XLA and progress; options are arguments of a training, and of the loop."""
    known = {field.name for field in dataclasses.fields(TrainingArguments)} & {*options}
    given = {"steps_per_execution": 2, "jit_compile": False, "batch_size": tasks[0].batch_size}
    args = TrainingArguments(**given | {name: options.pop(name) for name in known})
    return kind(encoder, tasks, optimizer, args, **{"progress": False, **options})
