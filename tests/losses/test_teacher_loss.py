from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.losses.fixed_encoder import FixedEncoder, log_softmax, one_id, over_replicas, unit
from use_st5.losses.teacher_loss import TeacherLoss

RNG = np.random.default_rng(2)
TABLE = RNG.standard_normal((6, 4))
TEACHER = RNG.standard_normal((6, 3)).astype(np.float32)
BATCH = {"sentence": one_id(6), "teacher": TEACHER}
ALL_TERMS = {"vector_weight": 0.7, "similarity_weight": 1.3, "ranking_weight": 0.4}


def test_equals_the_formula_in_numpy() -> None:
    loss = TeacherLoss(teacher_dim=3, temperature=0.5, **ALL_TERMS)
    value, metrics = loss(FixedEncoder(TABLE), BATCH)
    projected = TABLE @ loss.projection.get_weights()[0].astype(np.float64)
    cosine = (unit(projected) * unit(TEACHER)).sum(axis=1).mean()
    others = ~np.eye(6, dtype=bool)
    ours = (unit(TABLE) @ unit(TABLE).T)[others].reshape(6, 5)
    theirs = (unit(TEACHER) @ unit(TEACHER).T)[others].reshape(6, 5)
    error = np.square(ours - theirs).mean()
    log_p, log_q = log_softmax(theirs / 0.5), log_softmax(ours / 0.5)
    divergence = (np.exp(log_p) * (log_p - log_q)).sum(axis=1).mean()
    expected = 0.7 * (1 - cosine) + 1.3 * error + 0.4 * divergence
    assert float(value) == pytest.approx(expected, rel=1e-5)
    assert float(metrics["teacher_cosine"]) == pytest.approx(cosine, abs=1e-6)
    assert float(metrics["similarity_error"]) == pytest.approx(error, abs=1e-6)


def test_hints_add_their_cosine() -> None:
    hints = RNG.standard_normal((6, 5)).astype(np.float32)
    batch = {**BATCH, "hint": hints}
    loss = TeacherLoss(teacher_dim=3, hint_dim=5, hint_weight=0.6, **ALL_TERMS)
    value, metrics = loss(FixedEncoder(TABLE), batch)
    assert [feature.name for feature in loss.features] == ["sentence", "teacher", "hint"]
    assert tuple(metrics) == loss.metric_names
    projected = TABLE @ loss.hint_projection.get_weights()[0].astype(np.float64)
    cosine = (unit(projected) * unit(hints)).sum(axis=1).mean()
    assert float(metrics["hint_cosine"]) == pytest.approx(cosine, abs=1e-6)
    without = TeacherLoss(teacher_dim=3, **ALL_TERMS)
    without.build((None, 4))
    without.projection.set_weights(loss.projection.get_weights())
    expected = float(without(FixedEncoder(TABLE), batch)[0]) + 0.6 * (1 - cosine)
    assert float(value) == pytest.approx(expected, rel=1e-5)


def test_a_student_that_equals_its_teacher_has_learned_everything() -> None:
    loss = TeacherLoss(teacher_dim=4, **ALL_TERMS)
    vectors = 3.0 * TABLE.astype(np.float32)  # lengths do not count
    batch = {"sentence": one_id(6), "teacher": vectors}
    value, _ = loss(FixedEncoder(TABLE), batch)
    assert loss.projection is None
    assert float(value) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("rows", [1, 6])
def test_gradients_are_finite(rows: int) -> None:
    loss = TeacherLoss(teacher_dim=4, **ALL_TERMS)
    encoder = FixedEncoder(TABLE)
    table = tf.Variable(encoder.table)
    encoder.table = table
    teacher = TABLE[:rows].astype(np.float32)
    with tf.GradientTape() as tape:
        value, _ = loss(encoder, {"sentence": one_id(rows), "teacher": teacher})
    gradient = tf.convert_to_tensor(tape.gradient(value, table))
    assert np.isfinite(gradient).all()
    assert np.isfinite(float(value))


def test_replicas_compare_with_all_rows() -> None:
    loss = TeacherLoss(teacher_dim=3, **ALL_TERMS)
    together = float(loss(FixedEncoder(TABLE), BATCH)[0])
    assert over_replicas(loss, FixedEncoder(TABLE), BATCH, 2) == pytest.approx(together, rel=1e-5)
