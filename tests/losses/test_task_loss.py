from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.losses.fixed_encoder import FixedEncoder, one_id, over_replicas
from use_st5 import losses
from use_st5.data.arrays import ArrayData
from use_st5.losses import (
    BatchTripletLoss,
    ContrastiveLoss,
    MatryoshkaLoss,
    ScoredPairLoss,
    SimCSELoss,
    TaskLoss,
    task_loss,
)
from use_st5.training.task import Task

# The base classes have no example.
LOSSES = sorted(
    path.stem
    for path in Path(task_loss.__file__).parent.glob("*_loss.py")
    if path.stem not in {"task_loss", "vector_loss"}
)


@pytest.mark.parametrize("name", LOSSES)
def test_the_example_of_a_docstring_runs(name: str) -> None:
    module = importlib.import_module(f"use_st5.losses.{name}")
    ids = np.arange(1, 41, dtype=np.int32).reshape(8, 5)
    there = {
        "ids": ids,
        "others": ids + 1,
        "labels": np.arange(8, dtype=np.int32) % 3,
        "scores": np.linspace(0, 1, 8, dtype=np.float32),
        "vectors": np.ones((8, 6), np.float32),
        "ArrayData": ArrayData,
        "ContrastiveLoss": ContrastiveLoss,
    }
    # The data of an example are smaller than the default batch of a task.
    there["Task"] = lambda name, loss, data: Task(name, loss, data, batch_size=4)
    failed, tried = doctest.testmod(module, extraglobs=there)
    assert failed == 0
    assert tried in (3, 6), "an example for each class"


def test_an_example_that_does_not_fit_would_fail() -> None:
    data = ArrayData({"anchor": np.ones((8, 5), np.int32)})
    with pytest.raises(ValueError, match="'positive' is missing"):
        Task("pairs", ContrastiveLoss(), data).check_features()


# Arguments other than the defaults, for each loss but `MatryoshkaLoss`.
SETTINGS: dict[str, dict[str, Any]] = {
    "BatchTripletLoss": dict(mining="semi_hard", distance="euclidean", margin=0.2),
    "GISTEmbedLoss": {
        "guide_dim": 6,
        "temperature": 0.1,
        "margin": 0.1,
        "margin_strategy": "relative",
        "hard_negatives": 2,
    },
    "ClassificationLoss": dict(
        num_classes=2, parts=("v", "u"), hidden_dims=(5, 4), activation="gelu", dropout=0.1
    ),
    "ContrastiveLoss": dict(temperature=0.3, margin=0.2, hard_negatives=True, bidirectional=True),
    "DefinitionLoss": {},
    "InputResponseLoss": dict(hidden_dims=(5,), activation="gelu", scale=3.0, margin=0.2),
    "LabelLoss": dict(num_classes=3, hidden_dims=(5,), activation="tanh", dropout=0.1),
    "MultiLabelLoss": dict(num_classes=3, hidden_dims=(5,), activation="tanh", dropout=0.1),
    "PairLogitLoss": dict(objective="mse"),
    "ScoredPairLoss": dict(objective="cosent", similarity="angular", temperature=0.2),
    "SimCSELoss": dict(temperature=0.04, all_views=True, masked_span=5, mask_id=3, seed=7),
    "SkipThoughtLoss": dict(
        vocabulary_size=9, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=16
    ),
    "TripletLoss": dict(distance="euclidean", margin=0.2, hard_negatives=2),
    "TSDAELoss": dict(vocabulary_size=30, deletion=0.0, hidden_dim=8, num_heads=2, seed=3),
    "TeacherLoss": dict(
        teacher_dim=3,
        vector_weight=0.7,
        similarity_weight=1.3,
        ranking_weight=0.4,
        temperature=0.1,
        hint_dim=5,
        hint_weight=0.2,
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_config_holds_the_arguments_and_makes_the_same_loss(name: str) -> None:
    loss: TaskLoss = getattr(losses, name)(**SETTINGS[name])
    assert SETTINGS[name].items() <= loss.get_config().items()
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    assert again.features == loss.features


REPLICATED = {*SETTINGS} - {"DefinitionLoss", "PairLogitLoss", "SkipThoughtLoss"}
LOSSES_OF_A_BATCH = [getattr(losses, name)(**SETTINGS[name]) for name in sorted(REPLICATED)]
LOSSES_OF_A_BATCH += [SimCSELoss(), ScoredPairLoss(objective="mse")]
LOSSES_OF_A_BATCH += [BatchTripletLoss(), BatchTripletLoss(mining="all")]
LOSSES_OF_A_BATCH.append(MatryoshkaLoss(ContrastiveLoss(temperature=0.5), dimensions=(6, 2)))


@pytest.mark.parametrize("loss", LOSSES_OF_A_BATCH, ids=lambda loss: type(loss).__name__)
def test_replicas_see_one_batch(loss: TaskLoss) -> None:
    draw = np.random.default_rng(5)
    batch = {}
    for number, feature in enumerate(loss.features):
        ids = one_id(6, start=6 * number)
        ids[4] = ids[number % 2]  # an equal text on the other replica
        numbers = {"label": np.arange(6) % 2, "score": np.linspace(0, 1, 6, dtype=np.float32)}
        if feature.kind == "vector":
            numbers["vector"] = draw.standard_normal((6, feature.size)).astype(np.float32)
        batch[feature.name] = numbers.get(feature.kind, ids)
    encoder = FixedEncoder(draw.standard_normal((24, 6)))
    together = float(loss(encoder, batch)[0])
    assert over_replicas(loss, encoder, batch, 2) == pytest.approx(together, rel=1e-5)


def test_every_loss_has_settings_above() -> None:
    others = {"Feature", "Gather", "TaskLoss", "VectorLoss", "MatryoshkaLoss"}
    assert {*SETTINGS} == {*losses.__all__} - others


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("BatchTripletLoss", {"mining": "easy"}, "mining: expected one of"),
        ("ClassificationLoss", {"parts": ("u", "u")}, "Expected parts among"),
        ("ContrastiveLoss", {"temperature": 0.0}, "temperature: expected more"),
        ("PairLogitLoss", {"objective": "cosent"}, r"one of \('bce', 'mse'\)"),
        ("ScoredPairLoss", {"similarity": "dot"}, r"one of \('cosine', "),
        ("SimCSELoss", {"masked_span": 2}, "Expected the mask_id"),
        ("TripletLoss", {"distance": "dot"}, "distance: expected"),
        ("MatryoshkaLoss", {"loss": ContrastiveLoss(), "dimensions": (4, 4)}, "1 or more, each"),
    ],
)
def test_arguments_that_are_refused(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(losses, name)(**wrong)
