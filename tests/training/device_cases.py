"""Short trainings on texts of two widths, one for each task; imports no TensorFlow.

One of the three batches holds texts of both widths; its first rows are short texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from tests.training import toy
from use_st5 import losses
from use_st5.data.arrays import ArrayData
from use_st5.losses.task_loss import Feature, TaskLoss, VectorLoss
from use_st5.training.task import Task

ROWS, BATCH, BUCKETS = 48, 16, (2, toy.LENGTH)
STEPS = ROWS // BATCH

CASES: Mapping[str, Callable[[], TaskLoss]] = {
    "pairs": lambda: losses.ContrastiveLoss(
        temperature=0.1, margin=0.1, hard_negatives=True, bidirectional=True
    ),
    "scored_pairs": lambda: losses.ScoredPairLoss(objective="cosent"),
    "inference": lambda: losses.ClassificationLoss(hidden_dims=(8,)),
    "responses": lambda: losses.InputResponseLoss(hidden_dims=(8,)),
    "definitions": losses.DefinitionLoss,
    "labels": lambda: losses.LabelLoss(num_classes=3),
    "neighbours": lambda: losses.SkipThoughtLoss(
        vocabulary_size=20, hidden_dim=8, num_heads=2, intermediate_dim=16
    ),
    "texts": lambda: losses.SimCSELoss(temperature=0.5),
    "unscored_pairs": losses.PairLogitLoss,
    "teacher": lambda: losses.TeacherLoss(
        teacher_dim=toy.TEACHER, similarity_weight=1.0, ranking_weight=0.1
    ),
}


# The trainer's options for each way in which a step may be made.
WAYS: Mapping[str, Mapping[str, int]] = {
    "plain": {},
    "accumulated": {"gradient_accumulation_steps": 2},
    "cached": {"micro_batch_size": BATCH // 2},
    "both": {"gradient_accumulation_steps": 2, "micro_batch_size": BATCH // 4},
}


def ways(name: str) -> list[str]:
    """The ways in which a step of the task may be made; "both" is tried only with pairs."""
    by_vectors = isinstance(CASES[name](), VectorLoss)
    return [
        way
        for way, options in WAYS.items()
        if (by_vectors or "micro_batch_size" not in options) and (way != "both" or name == "pairs")
    ]


def encoder_for(name: str) -> keras.Model:
    """A toy that the task's loss can train."""
    kinds = {"definitions": toy.NamingToy, "unscored_pairs": toy.PairToy}
    return kinds.get(name, toy.ToyEncoder)()


def task(name: str) -> Task:
    """The task; its texts have two widths, except for neighbours, whose decoder reads one."""
    loss, draw = CASES[name](), np.random.default_rng(0)
    columns = {feature.name: _column(feature, draw) for feature in loss.features}
    data = ArrayData(columns, buckets=() if name == "neighbours" else BUCKETS)
    return Task(name, loss, data, batch_size=BATCH)


def _column(feature: Feature, draw: np.random.Generator) -> np.ndarray:
    if feature.kind == "label":
        return draw.integers(1, feature.size or toy.VOCABULARY, ROWS).astype(np.int32)
    if not feature.is_text:
        size = (ROWS,) if feature.size is None else (ROWS, feature.size)
        return draw.uniform(size=size).astype(np.float32)
    ids = draw.integers(1, toy.VOCABULARY, (ROWS, toy.LENGTH))
    short = draw.integers(1, BUCKETS[0] + 1, ROWS)
    lengths = np.where(np.arange(ROWS) < ROWS // 2, short, toy.LENGTH)
    return np.where(np.arange(toy.LENGTH) < lengths[:, None], ids, 0).astype(np.int32)


def result(trainer: Any) -> dict[str, list[float]]:
    """The losses of the steps, and all weights after them."""
    variables = trainer._trainable_variables()
    return {
        "losses": [record["loss"] for record in trainer.run(STEPS).records[-STEPS:]],
        "weights": [x for v in variables for x in np.asarray(v.value).ravel().tolist()],
    }
