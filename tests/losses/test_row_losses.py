"""Losses of single rows: labels, defined words, scores, the vectors of a teacher."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from tests.losses.fixed_encoder import (
    FixedEncoder,
    log_softmax,
    one_id,
    unit,
    weights,
)
from tests.training import toy
from use_st5.data.arrays import ArrayData
from use_st5.losses.classification_loss import ClassificationLoss, Part
from use_st5.losses.definition_loss import DefinitionLoss
from use_st5.losses.label_loss import LabelLoss, MultiLabelLoss
from use_st5.losses.scored_pair_loss import PairLogitLoss, ScoredPairLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.training.task import Task
from use_st5.training.tensorflow_step import TensorFlowLoop


def batch_of(labels: list[int]) -> dict[str, np.ndarray]:
    count = len(labels)
    return {
        "premise": one_id(count),
        "hypothesis": one_id(count, length=4, start=count),
        "label": np.array(labels, np.int64),
    }


@pytest.mark.parametrize(
    ("parts", "hidden"),
    [
        (("u", "v", "difference", "product"), (5,)),
        (("u", "v", "difference"), ()),  # Sentence-BERT's three.
        (("product", "v"), ()),
    ],
)
def test_equals_the_formula_in_numpy(parts: tuple[Part, ...], hidden: tuple[int, ...]) -> None:
    table = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    loss = ClassificationLoss(parts=parts, hidden_dims=hidden, activation="tanh")
    labels = [2, 0, 1, 1]
    value, metrics = loss(FixedEncoder(table), batch_of(labels))
    u, v = table[:4], table[4:]
    known = {"u": u, "v": v, "difference": np.abs(u - v), "product": u * v}
    x = np.concatenate([known[part] for part in parts], axis=1)
    for layer in loss.hidden_layers:
        kernel, bias = weights(layer)
        x = np.tanh(x @ kernel + bias)
    kernel, bias = weights(loss.output_layer)
    logits = x @ kernel + bias
    expected = -log_softmax(logits)[np.arange(4), labels].mean()
    assert float(value) == pytest.approx(expected, abs=1e-6)
    assert float(metrics["accuracy"]) == (logits.argmax(axis=1) == labels).mean()


def test_several_labels_by_hand() -> None:
    loss = MultiLabelLoss(num_classes=2)
    loss.build((None, 3))
    loss.output_layer.set_weights([np.array([[1, 0], [0, 0], [0, 0]]), np.array([0, 2])])
    # The logits are 1 and 2, the text has only the first label.
    batch = {"text": one_id(1), "labels": np.array([[1, 0]], np.float32)}
    value, metrics = loss(FixedEncoder(np.eye(3)), batch)
    expected = (np.log(1 + np.exp(-1)) + np.log(1 + np.exp(2))) / 2
    assert float(value) == pytest.approx(expected, abs=1e-6)
    assert float(metrics["accuracy"]) == 0.5


TABLE = np.random.default_rng(0).standard_normal((4, 3))
LABELS = [2, 0, 1, 1]
BATCH = {"text": one_id(4), "label": np.array(LABELS, np.int64)}


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_one_text_equals_the_formula_in_numpy(hidden: tuple[int, ...]) -> None:
    loss = LabelLoss(num_classes=3, hidden_dims=hidden, activation="tanh")
    value, metrics = loss(FixedEncoder(TABLE), BATCH)
    x = TABLE.astype(np.float32)
    for layer in loss.hidden_layers:
        kernel, bias = weights(layer)
        x = np.tanh(x @ kernel + bias)
    kernel, bias = weights(loss.output_layer)
    logits = x @ kernel + bias
    expected = -log_softmax(logits)[np.arange(4), LABELS].mean()
    assert float(value) == pytest.approx(expected, abs=1e-6)
    assert float(metrics["accuracy"]) == (logits.argmax(axis=1) == LABELS).mean()


def test_dropout_acts_in_training_alone() -> None:
    loss = LabelLoss(num_classes=3, dropout=0.5)
    still = [float(loss(FixedEncoder(TABLE), BATCH)[0]) for _ in range(2)]
    moving = [float(loss(FixedEncoder(TABLE), BATCH, training=True)[0]) for _ in range(2)]
    assert still[0] == still[1]
    assert moving[0] != moving[1]


def test_a_label_beyond_the_classes_is_found_before_the_training() -> None:
    problem = LabelLoss(num_classes=2).features[1].problem(np.array([0, 1, 2]))
    assert problem == "'label' holds labels 0…2, the classes are 2"


class NamingEncoder(FixedEncoder):
    """An encoder whose words are rows of a second table."""

    def __init__(self, table: np.ndarray, words: np.ndarray) -> None:
        super().__init__(table)
        self.words = words

    def word_logits(self, vectors: Any) -> Any:
        return ops.matmul(vectors, np.transpose(self.words).astype(np.float32))


def test_equals_the_formula_in_numpy_of_definition() -> None:
    draw = np.random.default_rng(0)
    table, words = draw.standard_normal((4, 3)), draw.standard_normal((7, 3))
    labels = [6, 0, 2, 2]
    batch = {"definition": one_id(4), "word": np.array(labels, np.int64)}
    value, metrics = DefinitionLoss()(NamingEncoder(table, words), batch)
    logits = table @ words.T
    assert float(value) == pytest.approx(-log_softmax(logits)[np.arange(4), labels].mean(), 1e-5)
    assert float(metrics["accuracy"]) == (logits.argmax(axis=1) == labels).mean()


def test_dropout_acts_in_training_alone_of_definition() -> None:
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


SCORED = np.random.default_rng(2).standard_normal((12, 5))
SCORES = np.array([0.9, 0.1, 0.5, 0.5, 0.0, 1.0], np.float32)
SCORED_BATCH = {"first": one_id(6), "second": one_id(6, start=6), "score": SCORES}
COSINES = (unit(SCORED[:6]) * unit(SCORED[6:])).sum(axis=1)


def value(loss: ScoredPairLoss, batch: dict[str, Any] = SCORED_BATCH) -> float:
    return float(loss(FixedEncoder(SCORED), batch)[0])


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


def test_angle_by_hand() -> None:
    """U = 1, v = 1 and v = i: z = 1 and z = −i, |Re + Im| = 1 for both; v = (1 + i)/√2: 0."""
    table = np.array([[1, 0], [1, 0], [0, 1], [1, 1]], np.float32)
    batch = {"first": np.zeros((3, 1), np.int32), "second": one_id(3, start=1), "score": SCORES[:3]}
    loss = ScoredPairLoss(objective="angle", temperature=1.0)
    # Scores 0.9, 0.1, 0.5: 0 above 1 and 2, 2 above 1. The similarities are 1, 1, 0.
    expected = np.log(1 + np.exp(1 - 1) + np.exp(0 - 1) + np.exp(1 - 0))
    assert float(loss(FixedEncoder(table), batch)[0]) == pytest.approx(expected, abs=1e-6)
    odd = np.pad(table, [(0, 0), (0, 1)])[:, [0, 2, 1]]  # A width of 3 is filled up to 4.
    assert float(loss(FixedEncoder(odd), batch)[0]) == pytest.approx(expected, abs=1e-6)


def test_equal_scores_leave_nothing_to_order() -> None:
    batch = {**SCORED_BATCH, "score": np.full(6, 0.3, np.float32)}
    assert value(ScoredPairLoss(objective="cosent"), batch) == 0.0


def test_the_gradient_of_equal_texts_is_finite() -> None:
    import tensorflow as tf

    vectors = tf.Variable(unit(SCORED[:3]).astype("f"))

    class Same(FixedEncoder):
        def __call__(self, ids: Any, training: bool = False) -> Any:
            return tf.gather(vectors, ids[:, 0])

    batch = {"first": one_id(3), "second": one_id(3), "score": SCORES[:3]}
    with tf.GradientTape() as tape:
        loss, _ = ScoredPairLoss(similarity="angular")(Same(SCORED), batch)
    gradient = tape.gradient(loss, vectors)
    assert np.isfinite(tf.convert_to_tensor(gradient).numpy()).all()


LOGITS = np.array([[2.0], [-1.0], [0.5], [30.0]])
SOFT = np.array([0.9, 0.2, 0.5, -0.05], np.float32)  # A cosine may be below 0.
PAIR_BATCH = {"pair": one_id(4), "score": SOFT}


def test_soft_cross_entropy_of_a_cross_encoder() -> None:
    x = LOGITS[:, 0]
    log_sigmoid = -np.log1p(np.exp(-x))
    expected = -np.mean(SOFT * log_sigmoid + (1 - SOFT) * (log_sigmoid - x))
    value, metrics = PairLogitLoss()(FixedEncoder(LOGITS), PAIR_BATCH)
    assert float(value) == pytest.approx(expected, rel=1e-6)
    error = np.mean((1 / (1 + np.exp(-x)) - SOFT) ** 2)
    assert float(metrics["score_error"]) == pytest.approx(error, rel=1e-5)


def test_squared_error_of_the_logit() -> None:
    value, _ = PairLogitLoss(objective="mse")(FixedEncoder(LOGITS), PAIR_BATCH)
    assert float(value) == pytest.approx(np.mean((LOGITS[:, 0] - SOFT) ** 2), rel=1e-6)


def test_an_encoder_of_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match="one number for a pair, received one of"):
        PairLogitLoss()(FixedEncoder(np.ones((4, 3))), PAIR_BATCH)


RNG = np.random.default_rng(2)
STUDENT = RNG.standard_normal((6, 4))
TEACHER = RNG.standard_normal((6, 3)).astype(np.float32)
TAUGHT = {"sentence": one_id(6), "teacher": TEACHER}
ALL_TERMS = {"vector_weight": 0.7, "similarity_weight": 1.3, "ranking_weight": 0.4}


def test_equals_the_formula_in_numpy_of_teacher() -> None:
    loss = TeacherLoss(teacher_dim=3, temperature=0.5, **ALL_TERMS)
    value, metrics = loss(FixedEncoder(STUDENT), TAUGHT)
    projected = STUDENT @ loss.projection.get_weights()[0].astype(np.float64)
    cosine = (unit(projected) * unit(TEACHER)).sum(axis=1).mean()
    others = ~np.eye(6, dtype=bool)
    ours = (unit(STUDENT) @ unit(STUDENT).T)[others].reshape(6, 5)
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
    batch = {**TAUGHT, "hint": hints}
    loss = TeacherLoss(teacher_dim=3, hint_dim=5, hint_weight=0.6, **ALL_TERMS)
    value, metrics = loss(FixedEncoder(STUDENT), batch)
    assert [feature.name for feature in loss.features] == ["sentence", "teacher", "hint"]
    assert tuple(metrics) == loss.metric_names
    projected = STUDENT @ loss.hint_projection.get_weights()[0].astype(np.float64)
    cosine = (unit(projected) * unit(hints)).sum(axis=1).mean()
    assert float(metrics["hint_cosine"]) == pytest.approx(cosine, abs=1e-6)
    without = TeacherLoss(teacher_dim=3, **ALL_TERMS)
    without.build((None, 4))
    without.projection.set_weights(loss.projection.get_weights())
    expected = float(without(FixedEncoder(STUDENT), batch)[0]) + 0.6 * (1 - cosine)
    assert float(value) == pytest.approx(expected, rel=1e-5)


def test_a_student_that_equals_its_teacher_has_learned_everything() -> None:
    loss = TeacherLoss(teacher_dim=4, **ALL_TERMS)
    vectors = 3.0 * STUDENT.astype(np.float32)  # lengths do not count
    batch = {"sentence": one_id(6), "teacher": vectors}
    value, _ = loss(FixedEncoder(STUDENT), batch)
    assert loss.projection is None
    assert float(value) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("rows", [1, 6])
def test_gradients_are_finite(rows: int) -> None:
    loss = TeacherLoss(teacher_dim=4, **ALL_TERMS)
    encoder = FixedEncoder(STUDENT)
    table = tf.Variable(encoder.table)
    encoder.table = table
    teacher = STUDENT[:rows].astype(np.float32)
    with tf.GradientTape() as tape:
        value, _ = loss(encoder, {"sentence": one_id(rows), "teacher": teacher})
    gradient = tf.convert_to_tensor(tape.gradient(value, table))
    assert np.isfinite(gradient).all()
    assert np.isfinite(float(value))
