from __future__ import annotations

import numpy as np
import pytest

from tests.losses.fixed_encoder import (
    FixedEncoder,
    log_softmax,
    one_id,
    over_replicas,
    unit,
    weights,
)
from use_st5.losses.input_response_loss import InputResponseLoss

TABLE = np.random.default_rng(1).standard_normal((8, 4))
BATCH = {"input": one_id(4), "response": one_id(4, start=4)}


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_equals_the_formula_in_numpy(margin: float) -> None:
    loss = InputResponseLoss(hidden_dims=(5, 6), scale=7.0, margin=margin)
    value, metrics = loss(FixedEncoder(TABLE), BATCH)
    v = TABLE[4:]
    for layer in loss.hidden_layers:
        kernel, bias = weights(layer)
        v = np.tanh(v @ kernel + bias)
    kernel, bias = weights(loss.output_layer)
    logits = 7.0 * (unit(TABLE[:4]) @ unit(v @ kernel + bias).T - margin * np.eye(4))
    assert float(value) == pytest.approx(-np.diag(log_softmax(logits)).mean(), abs=1e-5)
    assert float(metrics["accuracy"]) == (logits.argmax(axis=1) == np.arange(4)).mean()


def test_without_a_network_equal_pairs_cost_nothing() -> None:
    loss = InputResponseLoss(hidden_dims=(), scale=100.0)
    value, metrics = loss(FixedEncoder(np.eye(4)), {"input": one_id(4), "response": one_id(4)})
    assert not loss.trainable_variables
    assert float(value) == pytest.approx(0.0, abs=1e-6)
    assert float(metrics["accuracy"]) == 1.0


def test_a_repeated_response_is_no_negative() -> None:
    loss = InputResponseLoss(hidden_dims=(), scale=3.0)
    ids = np.array([[4], [5], [4], [6]], np.int32)
    value, _ = loss(FixedEncoder(TABLE), {"input": one_id(4, length=1), "response": ids})
    logits = 3.0 * unit(TABLE[:4]) @ unit(TABLE[ids[:, 0]]).T
    logits[0, 2] = logits[2, 0] = -np.inf
    assert float(value) == pytest.approx(-np.diag(log_softmax(logits)).mean(), abs=1e-5)


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_share_their_negatives(replicas: int) -> None:
    loss = InputResponseLoss(hidden_dims=(5,))
    ids = {"input": one_id(4), "response": np.array([[4], [5], [6], [4]], np.int32)}
    together = float(loss(FixedEncoder(TABLE), ids)[0])
    assert over_replicas(loss, FixedEncoder(TABLE), ids, replicas) == pytest.approx(together)
