from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.losses.fixed_encoder import FixedEncoder, one_id, over_replicas, unit
from use_st5.losses.scored_pair_loss import PairLogitLoss, ScoredPairLoss

TABLE = np.random.default_rng(2).standard_normal((12, 5))
SCORES = np.array([0.9, 0.1, 0.5, 0.5, 0.0, 1.0], np.float32)
BATCH = {"first": one_id(6), "second": one_id(6, start=6), "score": SCORES}
COSINES = (unit(TABLE[:6]) * unit(TABLE[6:])).sum(axis=1)


def value(loss: ScoredPairLoss, batch: dict[str, Any] = BATCH) -> float:
    return float(loss(FixedEncoder(TABLE), batch)[0])


def test_squared_error() -> None:
    expected = np.mean((COSINES - SCORES) ** 2)
    assert value(ScoredPairLoss()) == pytest.approx(expected, abs=1e-6)


def test_squared_error_of_the_angle() -> None:
    expected = np.mean((1 - np.arccos(COSINES) / np.pi - SCORES) ** 2)
    assert value(ScoredPairLoss(similarity="angular")) == pytest.approx(expected, abs=1e-6)


def test_soft_cross_entropy() -> None:
    probability = 1 / (1 + np.exp(-COSINES))
    expected = -np.mean(SCORES * np.log(probability) + (1 - SCORES) * np.log(1 - probability))
    assert value(ScoredPairLoss(objective="bce")) == pytest.approx(expected, abs=1e-6)


def test_cosent_sums_over_the_pairs_whose_scores_differ() -> None:
    total = sum(
        np.exp(20 * (COSINES[j] - COSINES[i]))  # the published factor
        for i in range(6)
        for j in range(6)
        if SCORES[i] > SCORES[j]
    )
    assert value(ScoredPairLoss(objective="cosent")) == pytest.approx(np.log(1 + total), rel=1e-5)


def test_equal_scores_leave_nothing_to_order() -> None:
    batch = {**BATCH, "score": np.full(6, 0.3, np.float32)}
    assert value(ScoredPairLoss(objective="cosent"), batch) == 0.0


@pytest.mark.parametrize("objective", ["mse", "bce", "cosent"])
def test_replicas_see_one_batch(objective: Any) -> None:
    loss = ScoredPairLoss(objective=objective)
    together = over_replicas(loss, FixedEncoder(TABLE), BATCH, replicas=2)
    assert together == pytest.approx(value(loss), abs=1e-5)


def test_the_gradient_of_equal_texts_is_finite() -> None:
    import tensorflow as tf

    vectors = tf.Variable(unit(TABLE[:3]).astype("f"))

    class Same(FixedEncoder):
        def __call__(self, ids: Any, training: bool = False) -> Any:
            return tf.gather(vectors, ids[:, 0])

    batch = {"first": one_id(3), "second": one_id(3), "score": SCORES[:3]}
    with tf.GradientTape() as tape:
        loss, _ = ScoredPairLoss(similarity="angular")(Same(TABLE), batch)
    gradient = tape.gradient(loss, vectors)
    assert np.isfinite(tf.convert_to_tensor(gradient).numpy()).all()


LOGITS = np.array([[2.0], [-1.0], [0.5], [30.0]])
LABELS = np.array([0.9, 0.2, 0.5, -0.05], np.float32)  # A cosine may be below 0.
PAIR_BATCH = {"pair": one_id(4), "score": LABELS}


def test_soft_cross_entropy_of_a_cross_encoder() -> None:
    x = LOGITS[:, 0]
    log_sigmoid = -np.log1p(np.exp(-x))
    expected = -np.mean(LABELS * log_sigmoid + (1 - LABELS) * (log_sigmoid - x))
    value, metrics = PairLogitLoss()(FixedEncoder(LOGITS), PAIR_BATCH)
    assert float(value) == pytest.approx(expected, rel=1e-6)
    error = np.mean((1 / (1 + np.exp(-x)) - LABELS) ** 2)
    assert float(metrics["score_error"]) == pytest.approx(error, rel=1e-5)


def test_squared_error_of_the_logit() -> None:
    value, _ = PairLogitLoss(objective="mse")(FixedEncoder(LOGITS), PAIR_BATCH)
    assert float(value) == pytest.approx(np.mean((LOGITS[:, 0] - LABELS) ** 2), rel=1e-6)


def test_an_encoder_of_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match="one number for a pair, received one of"):
        PairLogitLoss()(FixedEncoder(np.ones((4, 3))), PAIR_BATCH)
