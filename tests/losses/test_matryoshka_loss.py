from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.losses.fixed_encoder import FixedEncoder, one_id, over_replicas, unit
from use_st5.losses.contrastive_loss import ContrastiveLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.task_loss import VectorLoss
from use_st5.losses.teacher_loss import TeacherLoss

TABLE = np.random.default_rng(1).standard_normal((8, 6))
BATCH = {"anchor": one_id(4), "positive": one_id(4, start=4)}


def test_is_the_mean_of_the_losses_of_encoders_that_end_early() -> None:
    inner = ContrastiveLoss(temperature=0.2, bidirectional=True)
    value, metrics = MatryoshkaLoss(inner, dimensions=(6, 3, 2))(FixedEncoder(TABLE), BATCH)
    single = [inner(FixedEncoder(TABLE[:, :d]), BATCH) for d in (6, 3, 2)]
    assert float(value) == pytest.approx(np.mean([float(v) for v, _ in single]), rel=1e-5)
    assert list(metrics) == ["accuracy_6", "accuracy_3", "accuracy_2"]
    assert [float(m) for m in metrics.values()] == [float(m["accuracy"]) for _, m in single]


def test_every_dimension_has_layers_of_its_own() -> None:
    loss = MatryoshkaLoss(TeacherLoss(teacher_dim=5), dimensions=(6, 5, 2))
    loss.build((None, 6))
    assert [tuple(w.shape) for w in loss.trainable_variables] == [(6, 5), (2, 5)]


def test_replicas_share_their_candidates() -> None:
    loss = MatryoshkaLoss(ContrastiveLoss(temperature=0.5), dimensions=(6, 2))
    together = float(loss(FixedEncoder(TABLE), BATCH)[0])
    assert over_replicas(loss, FixedEncoder(TABLE), BATCH, 2) == pytest.approx(together, rel=1e-6)


class Product(VectorLoss):
    """A loss without `get_config`: Keras finds its arguments, and leaves out the name."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def texts(self, batch: dict) -> list:
        return [batch["anchor"], batch["positive"]]

    def from_vectors(self, vectors: list, batch: dict, **_: object) -> tuple:
        return self.factor * keras.ops.sum(vectors[0] * vectors[1]), {}


def test_a_loss_of_ones_own_keeps_its_arguments() -> None:
    loss = MatryoshkaLoss(Product(3.0), dimensions=(6,))
    single = float(Product(1.0)(FixedEncoder(unit(TABLE)), BATCH)[0])
    assert float(loss(FixedEncoder(TABLE), BATCH)[0]) == pytest.approx(3 * single, rel=1e-5)
    assert loss.get_config()["loss"]["config"]["factor"] == 3.0


def test_config_makes_the_same_loss_and_tells_nothing_of_the_process() -> None:
    losses = [
        MatryoshkaLoss(ContrastiveLoss(temperature=0.3), dimensions=(4, 2), name="m")
        for _ in range(2)
    ]
    assert losses[0].get_config() == losses[1].get_config()
    again = MatryoshkaLoss.from_config(losses[0].get_config())
    assert again.get_config() == losses[0].get_config()
    assert again.loss.temperature == 0.3


def test_a_dimension_beyond_the_encoder_is_refused() -> None:
    with pytest.raises(ValueError, match=r"up to the encoder.s 6, not"):
        MatryoshkaLoss(ContrastiveLoss(), dimensions=(8, 2))(FixedEncoder(TABLE), BATCH)
