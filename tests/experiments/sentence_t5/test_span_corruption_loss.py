from __future__ import annotations

import numpy as np
import pytest

from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from tests.losses.fixed_encoder import log_softmax
from use_st5.models.t5.model import T5, T5Config

INPUTS = np.array([[5, 6, 10, 1], [7, 10, 8, 1]], np.int32)


def _model() -> T5:
    model = T5(T5Config(12, 1, 6, 8, 2, 3))
    model.build()
    return model


def test_each_token_is_predicted_from_those_before_it() -> None:
    model, loss = _model(), SpanCorruptionLoss()
    targets = np.array([[10, 7, 1], [10, 9, 1]], np.int32)
    value, metrics = loss(model, {"inputs": INPUTS, "targets": targets})
    expected, right = [], []
    for row, target in zip(INPUTS, targets, strict=True):
        for place in range(3):
            # The decoder gets only the ids before this place, so it cannot see the rest.
            before = np.array([[0, *target[:place]]], np.int32)
            logits = np.asarray(model({"encoder_ids": row[None], "decoder_ids": before}))[0, -1]
            expected.append(-log_softmax(logits.astype(np.float64))[target[place]])
            right.append(logits.argmax() == target[place])
    assert float(value) == pytest.approx(np.mean(expected), abs=1e-5)
    assert float(metrics["accuracy"]) == pytest.approx(np.mean(right))


def test_padding_of_targets_does_not_count() -> None:
    model, loss = _model(), SpanCorruptionLoss()
    short = np.array([[10, 1], [10, 1]], np.int32)
    long = np.pad(short, [(0, 0), (0, 3)])
    values = [float(loss(model, {"inputs": INPUTS, "targets": ids})[0]) for ids in (short, long)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_owns_nothing_and_needs_no_dimension() -> None:
    loss = SpanCorruptionLoss()
    assert loss.built
    assert not loss.variables
    assert not hasattr(_model(), "dimension")
