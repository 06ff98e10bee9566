from __future__ import annotations

import numpy as np
import pytest

from tests.losses.fixed_encoder import FixedEncoder, log_softmax, one_id, weights
from use_st5.losses.classification_loss import ClassificationLoss, Part
from use_st5.losses.label_loss import LabelLoss


def batch_of(labels: list[int]) -> dict[str, np.ndarray]:
    count = len(labels)
    return {
        "premise": one_id(count),
        "hypothesis": one_id(count, length=4, start=count),
        "label": np.array(labels, np.int64),
    }


def test_equals_the_formula_in_numpy() -> None:
    table = np.random.default_rng(0).standard_normal((8, 3))
    loss = ClassificationLoss(hidden_dims=(5,), activation="tanh")
    labels = [2, 0, 1, 1]
    value, metrics = loss(FixedEncoder(table), batch_of(labels))
    u, v = table[:4].astype(np.float32), table[4:].astype(np.float32)
    x = np.concatenate([u, v, np.abs(u - v), u * v], axis=1)
    kernel, bias = weights(loss.hidden_layers[0])
    x = np.tanh(x @ kernel + bias)
    kernel, bias = weights(loss.output_layer)
    logits = x @ kernel + bias
    expected = -log_softmax(logits)[np.arange(4), labels].mean()
    assert float(value) == pytest.approx(expected, abs=1e-6)
    assert float(metrics["accuracy"]) == (logits.argmax(axis=1) == labels).mean()


@pytest.mark.parametrize("parts", [("u", "v", "difference"), ("product", "v"), ("difference",)])
def test_parts_are_a_choice(parts: tuple[Part, ...]) -> None:
    """Sentence-BERT's three, an order of one's own, and one alone."""
    table = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    loss = ClassificationLoss(parts=parts, hidden_dims=())
    labels = [2, 0, 1, 1]
    value, _ = loss(FixedEncoder(table), batch_of(labels))
    u, v = table[:4], table[4:]
    known = {"u": u, "v": v, "difference": np.abs(u - v), "product": u * v}
    kernel, bias = weights(loss.output_layer)
    assert kernel.shape == (3 * len(parts), 3)
    logits = np.concatenate([known[part] for part in parts], axis=1) @ kernel + bias
    expected = -log_softmax(logits)[np.arange(4), labels].mean()
    assert float(value) == pytest.approx(expected, abs=1e-6)


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
