"""The softmax over the rows of a batch, and the loss of pairs."""

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
from use_st5.losses import GISTEmbedLoss
from use_st5.losses.contrastive_loss import ContrastiveLoss, equal_ids
from use_st5.losses.input_response_loss import InputResponseLoss
from use_st5.losses.matryoshka_loss import MatryoshkaLoss
from use_st5.losses.simcse_loss import SimCSELoss
from use_st5.losses.task_loss import VectorLoss
from use_st5.losses.teacher_loss import TeacherLoss
from use_st5.losses.triplet_loss import BatchTripletLoss, TripletLoss


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


# On a line: the distances are differences.
LINE = FixedEncoder(np.array([[0], [1], [3], [4], [9]]))


def test_triplets_by_hand() -> None:
    columns = {"anchor": [0, 0, 1], "positive": [1, 3, 2], "negative": [2, 1, 2]}
    batch = {name: np.array(ids, np.int32)[:, None] for name, ids in columns.items()}
    value, metrics = TripletLoss(distance="euclidean", margin=1.0)(LINE, batch)
    # 1 − 3 + 1 < 0; 4 − 1 + 1 = 4; the third negative is the positive.
    assert float(value) == pytest.approx(4 / 3, abs=1e-6)
    assert float(metrics["accuracy"]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("mining", "costs"),
    [
        # Texts at 0, 1, 4 with label 0 and at 3, 9 with label 1; margin 0.5.
        ("hard", [4 - 3, 3 - 2, 4 - 1, 6 - 1, 6 - 5]),
        # The nearest negative beyond the positive, or the farthest one.
        ("semi_hard", [1 - 3, 4 - 9, 1 - 2, 3 - 8, 4 - 5, 3 - 5, 6 - 3, 6 - 8]),
        (
            "all",
            [1 - 3, 1 - 9, 4 - 3, 4 - 9, 1 - 2, 1 - 8, 3 - 2, 3 - 8]
            + [4 - 1, 4 - 5, 3 - 1, 3 - 5, 6 - 3, 6 - 2, 6 - 1, 6 - 9, 6 - 8, 6 - 5],
        ),
    ],
)
def test_mined_triplets_by_hand(mining: Any, costs: list[int]) -> None:
    batch = {"text": one_id(5), "label": np.array([0, 0, 1, 0, 1], np.int32)}
    loss = BatchTripletLoss(mining=mining, distance="euclidean", margin=0.5)
    terms = np.maximum(0, np.array(costs) + 0.5)
    expected = terms[terms > 0].mean() if mining == "all" else terms.mean()
    value, metrics = loss(LINE, batch)
    assert float(value) == pytest.approx(expected, abs=1e-6)
    assert float(metrics["accuracy"]) == pytest.approx(2 / 5)  # The texts at 0 and at 1.
    # The last text again with another label: it is no negative of itself, and has no positive.
    again = {"text": np.append(batch["text"], [[4, 0, 0]], axis=0), "label": [0, 0, 1, 0, 1, 2]}
    if mining == "hard":
        repeated = {name: np.array(column, np.int32) for name, column in again.items()}
        assert float(loss(LINE, repeated)[0]) == pytest.approx(expected, abs=1e-6)


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


ROWS = 6
RNG = np.random.default_rng(3)
GUIDED = RNG.standard_normal((3 * ROWS, 5)).astype(np.float32)
GUIDE = {
    f"guide_{name}": RNG.standard_normal((ROWS, 3)).astype(np.float32)
    for name in ("anchor", "positive", "negative")
}
IDS = {
    name: one_id(ROWS, start=ROWS * place)
    for place, name in enumerate(("anchor", "positive", "negative"))
}
GUIDED_BATCH = IDS | GUIDE


def test_a_case_by_hand() -> None:
    """Under the guide the second positive is nearer to the first anchor than its own one."""
    ours = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.float32)
    guide = {
        "guide_anchor": np.array([[1, 0], [0, 1]], np.float32),
        "guide_positive": np.array([[3, 4], [4, 3]], np.float32),
    }
    batch = {"anchor": one_id(2), "positive": one_id(2, start=2)}
    value, metrics = GISTEmbedLoss(guide_dim=2, temperature=1.0)(FixedEncoder(ours), batch | guide)
    # cos(a0, p0) = 0.6 under the guide, but cos(a0, p1) = 0.8 and cos(p0, p1) = 0.96: both are left
    # out; cos(a0, a1) = 0 stays. The same holds for row 1. So a row is 1 against 0.
    assert float(value) == pytest.approx(np.log(1 + np.exp(-1)), abs=1e-6)
    assert float(metrics["accuracy"]) == 1.0


def test_a_guide_that_tells_nothing_apart_leaves_the_negatives() -> None:
    """With a guide whose cosines are all equal, no candidate is above the positive."""
    flat = {name: np.ones_like(vectors) for name, vectors in GUIDE.items()}
    value, _ = GISTEmbedLoss(guide_dim=3, temperature=0.5)(FixedEncoder(GUIDED), IDS | flat)
    a, p = unit(GUIDED[:ROWS]), unit(GUIDED[ROWS : 2 * ROWS])
    own = np.where(np.eye(ROWS, dtype=bool), -np.inf, 0.0)
    rows = np.hstack([a @ p.T, a @ a.T + own, p @ p.T + own]) / 0.5
    assert float(value) == pytest.approx(-np.diag(log_softmax(rows)).mean(), abs=1e-5)


def test_equal_texts_are_no_negatives_of_each_other() -> None:
    """A second row with the same anchor and positive changes nothing for the first."""
    far = {name: np.eye(3, dtype=np.float32)[[0, 0, 1]] for name in GUIDE}
    ids = {"anchor": np.array([[0], [0], [2]]), "positive": np.array([[6], [6], [8]])}
    loss = GISTEmbedLoss(guide_dim=3, temperature=0.5)
    twice = loss(FixedEncoder(GUIDED), {name: x.astype(np.int32) for name, x in ids.items()} | far)
    a, p = unit(GUIDED[[0, 0, 2]]), unit(GUIDED[[6, 6, 8]])
    rows = np.hstack([a @ p.T, a @ a.T, p @ p.T]) / 0.5
    for block in range(3):
        for i in range(3):
            for j in range(3):
                if {i, j} == {0, 1} or (i == j and block > 0):
                    rows[i, 3 * block + j] = -np.inf
    assert float(twice[0]) == pytest.approx(-np.diag(log_softmax(rows)).mean(), abs=1e-5)


VIEWS = np.random.default_rng(3).standard_normal((6, 4))


class Dropping(FixedEncoder):
    """Imitates dropout: the second half of the rows is scaled, and so has other views."""

    def __call__(self, ids: Any, training: bool = False) -> Any:
        rows = super().__call__(ids)
        half = ops.shape(rows)[0] // 2
        return ops.concatenate([rows[:half], rows[half:] * np.float32([1, -1, 1, 2])])


def test_equals_the_equation_in_numpy() -> None:
    first, second = unit(VIEWS), unit(VIEWS * [1, -1, 1, 2])
    expected = -np.diag(log_softmax(first @ second.T / 0.05)).mean()
    value, metrics = SimCSELoss()(Dropping(VIEWS), {"sentence": one_id(6)}, training=True)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    right = (first @ second.T).argmax(axis=1) == np.arange(6)
    assert float(metrics["accuracy"]) == pytest.approx(right.mean())


def test_all_views_equal_mirror_bert_s_loss_in_numpy() -> None:
    """The normalized temperature-scaled cross-entropy over both views, as in its code."""
    views = np.concatenate([unit(VIEWS), unit(VIEWS * [1, -1, 1, 2])])
    scores = views @ views.T / 0.04
    np.fill_diagonal(scores, -np.inf)  # No view is its own candidate.
    partner = np.roll(np.arange(12), 6)
    expected = -log_softmax(scores)[np.arange(12), partner].mean()
    loss = SimCSELoss(temperature=0.04, all_views=True)
    value, metrics = loss(Dropping(VIEWS), {"sentence": one_id(6)}, training=True)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    assert float(metrics["accuracy"]) == pytest.approx((scores.argmax(axis=1) == partner).mean())
    one_way = SimCSELoss(temperature=0.04)(Dropping(VIEWS), {"sentence": one_id(6)})[0]
    assert abs(float(one_way) - float(value)) > 1e-2


def test_equal_texts_are_no_negatives() -> None:
    ids = one_id(2)
    twice = np.concatenate([ids, ids[:1]])
    value, _ = SimCSELoss(temperature=1.0)(FixedEncoder(np.eye(2)), {"sentence": twice})
    # Rows 0 and 2 see row 1 alone as a negative, row 1 sees both.
    rows = [np.log(1 + np.exp(-1)), np.log(1 + 2 * np.exp(-1)), np.log(1 + np.exp(-1))]
    assert float(value) == pytest.approx(np.mean(rows), rel=1e-5)


def test_a_span_inside_the_text_is_masked_and_the_ends_stay() -> None:
    ids = np.zeros((200, 9), np.int32)
    ids[:, :7] = [101, 11, 12, 13, 14, 15, 102]
    ids[0] = [101, 11, 12, 102, 0, 0, 0, 0, 0]
    loss = SimCSELoss(masked_span=2, mask_id=103, seed=1)
    plain, masked = (np.asarray(each) for each in loss.texts({"sentence": ids}))
    assert (plain == ids).all()
    assert (masked[0] == ids[0]).all()  # Masking would leave nothing of it.
    places = masked[1:] == 103
    assert (places.sum(axis=1) == 2).all()
    assert (masked[1:][~places] == ids[1:][~places]).all()
    starts = places.argmax(axis=1)
    assert (np.diff(np.nonzero(places)[1].reshape(-1, 2)) == 1).all()
    assert set(starts) == {1, 2, 3, 4}  # At every place except the ends.


@pytest.mark.usefixtures("global_policy")
def test_a_default_dtype_changes_no_place() -> None:
    ids = np.tile(np.int32([101, 11, 12, 13, 14, 15, 102]), (50, 1))
    found = SimCSELoss(masked_span=2, mask_id=103, seed=1).texts({"sentence": ids})[1]
    keras.config.set_floatx("float32")
    expected = SimCSELoss(masked_span=2, mask_id=103, seed=1).texts({"sentence": ids})[1]
    np.testing.assert_array_equal(found, expected)


WIDE = np.random.default_rng(1).standard_normal((8, 6))
PAIRS = {"anchor": one_id(4), "positive": one_id(4, start=4)}


def test_is_the_mean_of_the_losses_of_encoders_that_end_early() -> None:
    inner = ContrastiveLoss(temperature=0.2, bidirectional=True)
    value, metrics = MatryoshkaLoss(inner, dimensions=(6, 3, 2))(FixedEncoder(WIDE), PAIRS)
    single = [inner(FixedEncoder(WIDE[:, :d]), PAIRS) for d in (6, 3, 2)]
    assert float(value) == pytest.approx(np.mean([float(v) for v, _ in single]), rel=1e-5)
    assert list(metrics) == ["accuracy_6", "accuracy_3", "accuracy_2"]
    assert [float(m) for m in metrics.values()] == [float(m["accuracy"]) for _, m in single]


def test_every_dimension_has_layers_of_its_own() -> None:
    loss = MatryoshkaLoss(TeacherLoss(teacher_dim=5), dimensions=(6, 5, 2))
    loss.build((None, 6))
    assert [tuple(w.shape) for w in loss.trainable_variables] == [(6, 5), (2, 5)]


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
    single = float(Product(1.0)(FixedEncoder(unit(WIDE)), PAIRS)[0])
    assert float(loss(FixedEncoder(WIDE), PAIRS)[0]) == pytest.approx(3 * single, rel=1e-5)
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
        MatryoshkaLoss(ContrastiveLoss(), dimensions=(8, 2))(FixedEncoder(WIDE), PAIRS)
