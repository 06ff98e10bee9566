from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from use_st5.evaluation.geometry import alignment, evaluate_geometry, uniformity
from use_st5.evaluation.geometry import protocol as geometry_protocol
from use_st5.evaluation.sts import STSPair

# Of any length: what counts is the direction. East, north, west and 60 degrees from east.
VECTORS = {"e": [2.0, 0.0], "n": [0.0, 3.0], "w": [-1.0, 0.0], "s": [0.5, math.sqrt(0.75)]}
PAIRS = [
    STSPair("e", "n", 4.5),  # squared distance 2
    STSPair("e", "s", 4.0),  # 1
    STSPair("e", "e", 5.0),  # 0
    STSPair("e", "w", 3.9),  # 4
    STSPair("n", "e", 0.0),  # 2
]


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([VECTORS[sentence] for sentence in sentences])


def test_by_hand() -> None:
    score = evaluate_geometry(encode, PAIRS)
    assert score.alignment_above_4 == pytest.approx((2 + 0) / 2)
    assert score.alignment_from_4 == pytest.approx((2 + 1 + 0) / 3)
    # Squared distances of the four: en 2, ew 4, es 1, nw 2, ns 2 − √3, ws 3.
    kernels = [math.exp(-2 * squared) for squared in (2, 4, 1, 2, 2 - math.sqrt(3), 3)]
    assert score.uniformity == pytest.approx(math.log(sum(kernels) / 6))
    with_self_pairs = math.log((4 + 2 * sum(kernels)) / 16)
    assert score.uniformity_with_self_pairs == pytest.approx(with_self_pairs)
    assert (score.pairs, score.sentences) == (5, 4)
    assert (score.positives_above_4, score.positives_from_4) == (2, 3)


def test_a_sentence_counts_once_however_often_it_occurs() -> None:
    again = [*PAIRS, STSPair("n", "n", 1.0), STSPair("w", "n", 2.0)]
    assert (
        evaluate_geometry(encode, again).uniformity == evaluate_geometry(encode, PAIRS).uniformity
    )


@pytest.mark.parametrize("block", [1, 7, 100, 4096])
def test_uniformity_against_all_distances_at_once(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometry_protocol, "_BLOCK", block)
    vectors = np.random.default_rng(0).normal(0.3, 1.0, size=(100, 5)).astype(np.float32)
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1)[:, None]
    squared = pdist(unit, "sqeuclidean")
    assert uniformity(vectors) == pytest.approx(math.log(np.exp(-2 * squared).mean()), abs=1e-12)
    total = 100 + 2 * np.exp(-2 * squared).sum()
    assert uniformity(vectors, self_pairs=True) == pytest.approx(math.log(total / 100**2))


def test_bounds() -> None:
    same, opposite = np.ones((5, 3)), np.array([[1.0, 2.0], [-2.0, -4.0]])
    assert uniformity(same) == pytest.approx(0.0, abs=1e-12)
    assert uniformity(opposite) == pytest.approx(-8.0)
    assert alignment(opposite[:1], opposite[1:]) == pytest.approx(4.0)
    assert alignment(same, 7 * same) == pytest.approx(0.0)


def test_rotation_and_order_change_nothing() -> None:
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(40, 6))
    rotation, _ = np.linalg.qr(generator.normal(size=(6, 6)))
    turned = generator.permutation(vectors @ rotation * 3)
    assert uniformity(turned) == pytest.approx(uniformity(vectors))


def test_spread_vectors_are_more_uniform_than_a_cone() -> None:
    vectors = np.random.default_rng(2).normal(size=(200, 16))
    assert uniformity(vectors) < uniformity(vectors + 1) < uniformity(vectors + 5)


def test_what_is_refused_or_undefined() -> None:
    with pytest.raises(ValueError, match="expected two distinct sentences, received 1"):
        evaluate_geometry(encode, [STSPair("e", "e", 5.0)])
    with pytest.raises(ValueError, match="expected at least two rows, received 1"):
        uniformity(np.ones((1, 2)))
    with pytest.raises(ValueError, match="NaN or infinity for 'n'"):
        evaluate_geometry(lambda s: np.array([[np.nan if x == "n" else 1.0] for x in s]), PAIRS)
    with pytest.raises(ValueError, match=r"expected an array of shape \[4, dim\]"):
        evaluate_geometry(lambda s: encode(s)[1:], PAIRS)
    score = evaluate_geometry(encode, PAIRS[3:])
    assert math.isnan(score.alignment_above_4)
    assert score.positives_from_4 == 0
