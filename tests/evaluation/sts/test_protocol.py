from __future__ import annotations

import math

import numpy as np
import pytest

from use_st5.evaluation.sts import STSPair, STSSet, evaluate_sts

# On the unit circle: the angle between two sentences is the difference of these, in degrees.
ANGLES = {"a": 0.0, "b": 30.0, "c": 90.0, "d": 180.0, "e": 45.0}


def encode(sentences: list[str]) -> np.ndarray:
    radians = np.deg2rad([ANGLES[sentence] for sentence in sentences])
    # Lengths must not matter for cosine and angular similarity.
    lengths = np.arange(1, len(sentences) + 1)[:, None]
    return np.stack([np.cos(radians), np.sin(radians)], axis=1) * lengths


def pairs(*rows: tuple[str, str, float]) -> list[STSPair]:
    return [STSPair(*row) for row in rows]


TWO = STSSet(
    "toy",
    {
        # Cosines 1, cos 30, 0: the gold order is the same.
        "x": pairs(("a", "a", 5), ("a", "b", 4), ("a", "c", 1)),
        # Cosines cos 45, -1: the gold order is the reverse.
        "y": pairs(("a", "e", 0), ("a", "d", 5)),
    },
)


def test_by_hand() -> None:
    (score,) = evaluate_sts(encode, TWO)
    assert (score.name, score.metric, score.pairs) == ("toy", "cosine", 5)
    # Similarities 1, .866, 0, .707, -1 have ranks 5 4 2 3 1; gold 5 4 1 0 5 has 4.5 3 2 1 4.5.
    ranks, gold = np.array([5, 4, 2, 3, 1]), np.array([4.5, 3, 2, 1, 4.5])
    expected = np.sum((ranks - 3) * (gold - 3)) / math.sqrt(10 * np.sum((gold - 3) ** 2))
    assert score.spearman == pytest.approx(
        {"all": expected, "mean": 0.0, "wmean": 3 / 5 - 2 / 5, "x": 1.0, "y": -1.0}
    )
    x = np.array([1, math.sqrt(3) / 2, 0]) - (1 + math.sqrt(3) / 2) / 3
    g = np.array([5, 4, 1]) - 10 / 3
    pearson = float(x @ g / math.sqrt((x @ x) * (g @ g)))
    assert score.pearson["x"] == pytest.approx(pearson)
    assert score.pearson["wmean"] == pytest.approx(3 / 5 * pearson - 2 / 5)


def test_angular_keeps_ranks_and_is_linear_in_the_angle() -> None:
    data = pairs(("a", "a", 180), ("a", "b", 150), ("a", "c", 90), ("a", "d", 0), ("a", "e", 135))
    cosine, angular = evaluate_sts(encode, data, metrics=("cosine", "angular"))
    assert angular.metric == "angular"
    assert angular.spearman == pytest.approx(cosine.spearman)
    assert angular.pearson["all"] == pytest.approx(1.0)
    assert cosine.pearson["all"] < 0.995


def test_dot_uses_lengths() -> None:
    data = pairs(("a", "b", 1), ("b", "c", 2))
    cosine, dot = evaluate_sts(encode, data, metrics=("cosine", "dot"))
    # cos 30 · 1 · 2 against cos 60 · 2 · 3.
    assert (cosine.spearman["all"], dot.spearman["all"]) == pytest.approx((-1, 1))


def test_one_call_with_each_sentence_once() -> None:
    calls: list[list[str]] = []

    def counting(sentences: list[str]) -> np.ndarray:
        calls.append(sentences)
        return encode(sentences)

    evaluate_sts(counting, TWO, metrics=("cosine", "angular"))
    assert calls == [["a", "b", "c", "e", "d"]]


def test_constant_similarity_or_gold_is_not_a_number() -> None:
    data = pairs(("a", "a", 1), ("b", "b", 2))
    (score,) = evaluate_sts(lambda s: np.ones((len(s), 3)), data)
    assert math.isnan(score.spearman["all"])
    assert math.isnan(score.pearson["all"])
    (score,) = evaluate_sts(encode, pairs(("a", "b", 3), ("a", "c", 3)))
    assert math.isnan(score.spearman["all"])


def test_what_is_refused() -> None:
    data = TWO.subsets["x"]
    with pytest.raises(
        ValueError, match=r"expected an array of shape \[3, dim\], received \[2, 2\]"
    ):
        evaluate_sts(lambda s: encode(s)[:-1], data)
    with pytest.raises(ValueError, match=r"received \[3\]"):
        evaluate_sts(lambda s: np.ones(len(s)), data)
    with pytest.raises(ValueError, match="NaN or infinity for 'b'"):
        evaluate_sts(lambda s: np.array([[np.nan if x == "b" else 1.0] for x in s]), data)
    with pytest.raises(ValueError, match="Unknown metric: 'euclidean'"):
        evaluate_sts(encode, data, metrics=("euclidean",))
    with pytest.raises(ValueError, match=r"needs two pairs; too few in \['pairs'\]"):
        evaluate_sts(encode, data[:1])
    with pytest.raises(ValueError, match="too few"):
        evaluate_sts(encode, [])
    with pytest.raises(ValueError, match="received none"):
        evaluate_sts(encode, STSSet("empty", {}))
