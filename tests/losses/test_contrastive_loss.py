"""The softmax over the rows of a batch, and the loss of pairs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.losses.fixed_encoder import (
    FixedEncoder,
    log_softmax,
    one_id,
    over_replicas,
    unit,
    weights,
)
from use_st5.losses.contrastive_loss import ContrastiveLoss, equal_ids
from use_st5.losses.input_response_loss import InputResponseLoss


@pytest.mark.parametrize("jit_compile", [False, True])
def test_equal_rows_are_those_of_equal_ids_whatever_their_padding(jit_compile: bool) -> None:
    rng = np.random.default_rng(0)
    short = rng.integers(1, 3, (64, 5)).astype(np.int32)  # many rows are equal
    long = np.pad(rng.integers(1, 3, (48, 5)).astype(np.int32), [(0, 0), (0, 3)])
    long[7, 6] = 1
    compare = tf.function(equal_ids, jit_compile=jit_compile)
    padded = np.pad(short, [(0, 0), (0, 3)])
    expected = (padded[:, None] == long[None]).all(axis=-1)
    assert expected.any()
    np.testing.assert_array_equal(compare(tf.constant(short), tf.constant(long)), expected)


def test_rows_of_a_width_that_is_known_late_have_the_same_keys() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 3, (64, 4)).astype(np.int32)
    late = tf.function(equal_ids, input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)
    np.testing.assert_array_equal(late(ids, np.pad(ids, [(0, 0), (0, 3)])), equal_ids(ids, ids))
    longest = np.pad(ids, [(0, 0), (9000, 0)])
    np.testing.assert_array_equal(late(longest, longest), equal_ids(longest, longest))
    np.testing.assert_array_equal(equal_ids(longest, longest), equal_ids(ids, ids))


def test_ids_of_a_large_vocabulary_in_another_order_are_not_equal() -> None:
    a = np.array([[250_111, 1, 2], [1, 250_111, 2]], np.int32)
    np.testing.assert_array_equal(equal_ids(a, a), np.eye(2, dtype=bool))


TABLE = np.random.default_rng(1).standard_normal((12, 4))
BATCH = {"anchor": one_id(4), "positive": one_id(4, start=4), "negative": one_id(4, start=8)}
A, P, N = unit(TABLE[:4]), unit(TABLE[4:8]), unit(TABLE[8:])


def cost(logits: np.ndarray) -> float:
    """Mean cross-entropy of rows; the true column of row i is column i."""
    return -np.diag(log_softmax(logits)).mean()


@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("hard_negatives", [False, True])
def test_equals_the_equations_in_numpy(
    margin: float, bidirectional: bool, hard_negatives: bool
) -> None:
    loss = ContrastiveLoss(
        temperature=0.2, margin=margin, bidirectional=bidirectional, hard_negatives=hard_negatives
    )
    value, metrics = loss(FixedEncoder(TABLE), BATCH)
    pairs = A @ P.T - margin * np.eye(4)
    rows = np.hstack([pairs, A @ N.T]) if hard_negatives else pairs
    expected = cost(rows / 0.2) + (cost(pairs.T / 0.2) if bidirectional else 0.0)
    assert float(value) == pytest.approx(expected, abs=1e-5)
    assert float(metrics["accuracy"]) == (rows.argmax(axis=1) == np.arange(4)).mean()


def test_the_published_temperature_is_a_hundredth() -> None:
    # Two equal pairs at right angles to each other: a false candidate weighs e^-100.
    batch = {"anchor": one_id(2), "positive": one_id(2)}
    assert float(ContrastiveLoss()(FixedEncoder(np.eye(2)), batch)[0]) == 0.0
    away = {"anchor": one_id(2), "positive": one_id(2)[::-1]}
    assert float(ContrastiveLoss()(FixedEncoder(np.eye(2)), away)[0]) == pytest.approx(100.0)


def test_rows_with_an_equal_anchor_or_an_equal_positive_are_not_set_against_one_another() -> None:
    anchors = np.array([[0], [0], [2], [3]], np.int32)
    positives = np.array([[4], [5], [6], [6]], np.int32)
    loss = ContrastiveLoss(temperature=0.5, bidirectional=True)
    value, _ = loss(FixedEncoder(TABLE), {"anchor": anchors, "positive": positives})
    pairs = unit(TABLE[anchors[:, 0]]) @ unit(TABLE[positives[:, 0]]).T / 0.5
    for i, j in ((0, 1), (2, 3)):
        pairs[i, j] = pairs[j, i] = -np.inf
    assert float(value) == pytest.approx(cost(pairs) + cost(pairs.T), abs=1e-5)


def test_a_hard_negative_with_the_ids_of_the_positive_is_none() -> None:
    negatives = np.array([[8], [4], [9], [10]], np.int32)  # row 1's is the positive of row 0
    loss = ContrastiveLoss(temperature=0.5, hard_negatives=True)
    # Positives are padded further than negatives: the ids count, not their padding.
    value, _ = loss(FixedEncoder(TABLE), {**BATCH, "negative": negatives})
    rows = np.hstack([A @ P.T, A @ unit(TABLE[negatives[:, 0]]).T]) / 0.5
    rows[0, 5] = -np.inf
    assert float(value) == pytest.approx(cost(rows), abs=1e-5)


def test_several_negatives_of_a_row_are_candidates_of_all_rows() -> None:
    first, second = (
        np.array(ids, np.int32) for ids in ([[8], [9], [10], [11]], [[9], [0], [1], [2]])
    )
    loss = ContrastiveLoss(temperature=0.5, hard_negatives=2)
    assert [feature.name for feature in loss.features][2:] == ["negative", "negative_2"]
    value, _ = loss(FixedEncoder(TABLE), {**BATCH, "negative": first, "negative_2": second})
    rows = [A @ P.T, *(A @ unit(TABLE[ids[:, 0]]).T for ids in (first, second))]
    assert float(value) == pytest.approx(cost(np.hstack(rows) / 0.5), abs=1e-5)


def test_replicas_share_their_candidates() -> None:
    loss = ContrastiveLoss(temperature=0.5, margin=0.1, hard_negatives=True, bidirectional=True)
    batch = {**BATCH, "positive": np.array([[4], [5], [6], [4]], np.int32)}
    together = float(loss(FixedEncoder(TABLE), batch)[0])
    shared = over_replicas(loss, FixedEncoder(TABLE), batch, 2)
    assert shared == pytest.approx(together, rel=1e-6)


TALK = {"input": one_id(4), "response": one_id(4, start=4)}


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_a_response_network_in_numpy(margin: float) -> None:
    loss = InputResponseLoss(hidden_dims=(5, 6), scale=7.0, margin=margin)
    value, metrics = loss(FixedEncoder(TABLE), TALK)
    v = TABLE[4:8]
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


def test_replicas_share_their_responses() -> None:
    loss = InputResponseLoss(hidden_dims=(5,))
    ids = {"input": one_id(4), "response": np.array([[4], [5], [6], [4]], np.int32)}
    together = float(loss(FixedEncoder(TABLE), ids)[0])
    assert over_replicas(loss, FixedEncoder(TABLE), ids, 2) == pytest.approx(together)
