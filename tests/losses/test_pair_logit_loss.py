from __future__ import annotations

import numpy as np
import pytest

from tests.losses.fixed_encoder import FixedEncoder, one_id
from use_st5.losses.pair_logit_loss import PairLogitLoss

LOGITS = np.array([[2.0], [-1.0], [0.5], [30.0]])
SCORES = np.array([0.9, 0.2, 0.5, -0.05], np.float32)  # A cosine may be below 0.
BATCH = {"pair": one_id(4), "score": SCORES}


def test_soft_cross_entropy() -> None:
    x = LOGITS[:, 0]
    log_sigmoid = -np.log1p(np.exp(-x))
    expected = -np.mean(SCORES * log_sigmoid + (1 - SCORES) * (log_sigmoid - x))
    value, metrics = PairLogitLoss()(FixedEncoder(LOGITS), BATCH)
    assert float(value) == pytest.approx(expected, rel=1e-6)
    error = np.mean((1 / (1 + np.exp(-x)) - SCORES) ** 2)
    assert float(metrics["score_error"]) == pytest.approx(error, rel=1e-5)


def test_squared_error_of_the_logit() -> None:
    value, _ = PairLogitLoss(objective="mse")(FixedEncoder(LOGITS), BATCH)
    assert float(value) == pytest.approx(np.mean((LOGITS[:, 0] - SCORES) ** 2), rel=1e-6)


def test_an_encoder_of_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match="one number for a pair, received an encoder of dimension"):
        PairLogitLoss()(FixedEncoder(np.ones((4, 3))), BATCH)
