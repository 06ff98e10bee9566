"""Span corruption and its loss."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.sentence_t5.span_corruption import SpanCorruption
from experiments.sentence_t5.span_corruption_loss import SpanCorruptionLoss
from tests.losses.fixed_encoder import log_softmax
from use_st5.models.t5.model import T5, T5Config

SENTINELS = range(32_000, 32_100)


def test_the_example_of_figure_2() -> None:
    # Thank(10) you for inviting me to your party last week(19): spans "for inviting" and "last".
    tokens = np.arange(10, 20)[None]
    masks = np.zeros((1, 10), bool)
    masks[0, [2, 3, 8]] = True
    corrupted = SpanCorruption(10).take_out(tokens, masks)
    x, y, z = 32_099, 32_098, 32_097
    assert corrupted["inputs"].tolist() == [[10, 11, x, 14, 15, 16, 17, y, 19, 1]]
    # In the targets, each stretch that stays is a sentinel, also the last, as in the figure.
    assert corrupted["targets"].tolist() == [[x, 12, 13, y, 18, z, 1]]


def _restored(inputs: list[int], targets: list[int]) -> list[int]:
    """The text: each sentinel of the inputs replaced by what follows it in the targets."""
    assert inputs.pop() == targets.pop() == 1
    spans: dict[int, list[int]] = {}
    for token in targets:
        if token in SENTINELS:
            current = spans.setdefault(token, [])
        else:
            current.append(token)
    assert list(spans) == [32_099 - number for number in range(len(spans))]
    return [each for token in inputs for each in spans.get(token, [token])]


@pytest.mark.parametrize("length", [2, 7, 20, 141, 568])
def test_inputs_and_targets_restore_the_text(length: int) -> None:
    corruption = SpanCorruption(length)
    tokens = np.random.default_rng(0).integers(2, 32_000, (20, length))
    corrupted = corruption(tokens, seed=1)
    assert corrupted["inputs"].shape == (20, corruption.inputs_length)
    assert corrupted["targets"].shape == (20, corruption.targets_length)
    for text, inputs, targets in zip(
        tokens.tolist(), corrupted["inputs"].tolist(), corrupted["targets"].tolist(), strict=True
    ):
        assert _restored(inputs, targets) == text


def test_published_lengths() -> None:
    # t5/data/preprocessors.py, random_spans_helper: 568 become inputs of 512, targets of 114.
    corruption = SpanCorruption(568)
    assert (corruption.inputs_length, corruption.targets_length) == (512, 114)
    assert (corruption.noise_tokens, corruption.spans) == (85, 28)


def test_masks_have_the_density_and_the_spans() -> None:
    corruption = SpanCorruption(141)
    masks = corruption.masks(2000, seed=0)
    assert set(masks.sum(axis=1)) == {21}
    begins = np.diff(masks.astype(int), axis=1) == 1
    assert set(begins.sum(axis=1)) == {7}
    assert not masks[:, 0].any() and masks[:, -1].all()
    # A span's length varies, and no place but the ends is preferred.
    shares = masks.mean(axis=0)
    assert shares[10:-10].min() > 0.05
    assert shares[10:-10].max() < 0.25
    first = masks.argmax(axis=1)
    lengths = (~masks[np.arange(2000)[:, None], (first[:, None] + np.arange(20)) % 141]).argmax(1)
    assert lengths.min() == 1 and lengths.max() > 5
    assert lengths.mean() == pytest.approx(3.0, abs=0.15)


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
