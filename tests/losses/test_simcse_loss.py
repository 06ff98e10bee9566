from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from tests.losses.fixed_encoder import FixedEncoder, log_softmax, one_id, over_replicas, unit
from use_st5.losses.simcse_loss import SimCSELoss

TABLE = np.random.default_rng(3).standard_normal((6, 4))


class Dropping(FixedEncoder):
    """Imitates dropout: the second half of the rows is scaled, and so has other views."""

    def __call__(self, ids: Any, training: bool = False) -> Any:
        rows = super().__call__(ids)
        half = ops.shape(rows)[0] // 2
        return ops.concatenate([rows[:half], rows[half:] * np.float32([1, -1, 1, 2])])


def test_equals_the_equation_in_numpy() -> None:
    first, second = unit(TABLE), unit(TABLE * [1, -1, 1, 2])
    expected = -np.diag(log_softmax(first @ second.T / 0.05)).mean()
    value, metrics = SimCSELoss()(Dropping(TABLE), {"sentence": one_id(6)}, training=True)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    right = (first @ second.T).argmax(axis=1) == np.arange(6)
    assert float(metrics["accuracy"]) == pytest.approx(right.mean())


def test_all_views_equal_mirror_bert_s_loss_in_numpy() -> None:
    """The normalized temperature-scaled cross-entropy over both views, as in its code."""
    views = np.concatenate([unit(TABLE), unit(TABLE * [1, -1, 1, 2])])
    scores = views @ views.T / 0.04
    np.fill_diagonal(scores, -np.inf)  # No view is its own candidate.
    partner = np.roll(np.arange(12), 6)
    expected = -log_softmax(scores)[np.arange(12), partner].mean()
    loss = SimCSELoss(temperature=0.04, all_views=True)
    value, metrics = loss(Dropping(TABLE), {"sentence": one_id(6)}, training=True)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    assert float(metrics["accuracy"]) == pytest.approx((scores.argmax(axis=1) == partner).mean())
    one_way = SimCSELoss(temperature=0.04)(Dropping(TABLE), {"sentence": one_id(6)})[0]
    assert abs(float(one_way) - float(value)) > 1e-2


def test_equal_texts_are_no_negatives() -> None:
    ids = one_id(2)
    twice = np.concatenate([ids, ids[:1]])
    value, _ = SimCSELoss(temperature=1.0)(FixedEncoder(np.eye(2)), {"sentence": twice})
    # Rows 0 and 2 see row 1 alone as a negative, row 1 sees both.
    rows = [np.log(1 + np.exp(-1)), np.log(1 + 2 * np.exp(-1)), np.log(1 + np.exp(-1))]
    assert float(value) == pytest.approx(np.mean(rows), rel=1e-5)


@pytest.mark.parametrize("all_views", [False, True])
def test_replicas_see_one_batch(all_views: bool) -> None:
    loss, batch = SimCSELoss(all_views=all_views), {"sentence": one_id(6)}
    alone = float(loss(FixedEncoder(TABLE), batch)[0])
    together = over_replicas(loss, FixedEncoder(TABLE), batch, replicas=2)
    assert together == pytest.approx(alone, abs=1e-5)


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
