from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from use_st5.evaluation.sts import STSPair, STSSet, evaluate_sts
from use_st5.evaluation.sts.protocol import dice_coefficient, evaluate_by_dice, subset_details
from use_st5.vector_store import VectorCache

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


def random_set(seed: int) -> STSSet:
    """Two subsets whose gold scores have ties."""
    draw = random.Random(seed)
    some = [
        STSPair(*draw.choices([*ANGLES], k=2), score=draw.choice([0, 1.5, 2.2, 3, 4.8, 5]))
        for _ in range(50)
    ]
    return STSSet("random", {"x": some[:20], "y": some[20:]})


def with_scores(data: STSSet, scale: Callable[[float], float]) -> STSSet:
    subsets = {
        name: [replace(pair, score=scale(pair.score)) for pair in subset]
        for name, subset in data.subsets.items()
    }
    return STSSet(data.name, subsets)


@pytest.mark.parametrize("seed", range(3))
def test_a_monotone_map_of_the_scores_leaves_spearman_and_a_linear_one_pearson(seed: int) -> None:
    data = random_set(seed)
    (score,) = evaluate_sts(encode, data)
    (monotone,) = evaluate_sts(encode, with_scores(data, lambda gold: math.exp(gold) - 7))
    (linear,) = evaluate_sts(encode, with_scores(data, lambda gold: gold / 5))
    (reversed_,) = evaluate_sts(encode, with_scores(data, lambda gold: 5 - gold))
    assert monotone.spearman == pytest.approx(score.spearman)
    assert monotone.pearson["all"] != pytest.approx(score.pearson["all"], abs=1e-3)
    assert linear.pearson == pytest.approx(score.pearson)
    for kind in ("spearman", "pearson"):
        expected = {name: -value for name, value in getattr(score, kind).items()}
        assert getattr(reversed_, kind) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_permuting_pairs_or_swapping_their_sentences_changes_nothing(seed: int) -> None:
    data, draw = random_set(seed), random.Random(seed)
    permuted = STSSet(
        data.name,
        {
            name: [
                replace(pair, first=pair.second, second=pair.first) if draw.random() < 0.5 else pair
                for pair in draw.sample(pairs, len(pairs))
            ]
            for name, pairs in reversed(data.subsets.items())
        },
    )
    metrics = ("cosine", "angular")
    scores = (evaluate_sts(encode, each, metrics=metrics) for each in (data, permuted))
    for one, other in zip(*scores, strict=True):
        assert one.spearman == pytest.approx(other.spearman)
        assert one.pearson == pytest.approx(other.pearson)


def test_the_same_vector_at_different_lengths_has_no_order() -> None:
    # All cosines are 1 but for rounding errors, which must not be correlated.
    direction = np.random.default_rng(0).normal(size=300)
    lengths = dict(zip("abcde", (1, 0.1, 3, 7, 1 / 3), strict=True))

    def cone(sentences: list[str]) -> np.ndarray:
        return np.array([lengths[each] * direction for each in sentences], np.float32)

    (score,) = evaluate_sts(cone, pairs(("a", "b", 1), ("b", "c", 2), ("c", "d", 3), ("a", "e", 4)))
    assert math.isnan(score.spearman["all"])
    assert math.isnan(score.pearson["all"])


def test_a_zero_vector_is_similar_to_nothing() -> None:
    # As in SentEval, which takes the undefined cosine for 0: between 1 (a, a) and −1 (a, d).
    def zero_for_c(sentences: list[str]) -> np.ndarray:
        return encode(sentences) * np.array([[sentence != "c"] for sentence in sentences])

    data = pairs(("a", "a", 5), ("c", "c", 3), ("b", "c", 3), ("a", "d", 0))
    (score,) = evaluate_sts(zero_for_c, data)
    assert score.spearman["all"] == pytest.approx(1.0)


def test_an_embedder_is_asked_once_for_all_sets() -> None:
    asked: list[str] = []

    def counting(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return encode(sentences)

    embed = VectorCache(counting)
    first = evaluate_sts(embed, TWO)
    assert evaluate_sts(embed, TWO) == first
    assert sorted(asked) == sorted(ANGLES)


def test_details_of_subsets() -> None:
    (score,) = evaluate_sts(encode, TWO)
    x, y = score.pearson["x"], score.pearson["y"]
    assert subset_details(TWO, score) == {
        "x": {"pairs": 3, "spearman": score.spearman["x"], "pearson": x},
        "y": {"pairs": 2, "spearman": score.spearman["y"], "pearson": y},
    }


# Table 2 of the paper, its first sentence against each of these.
@pytest.mark.parametrize(
    ("other", "published"),
    [
        ("The man is playing the guitar.", 0.800),
        ("A guy is playing an instrument.", 0.545),
        ("A man is playing a guitar and singing.", 0.833),
        ("The girl is playing the guitar.", 0.600),
        ("A woman is cutting vegetable.", 0.400),
    ],
)
def test_coefficients_of_the_paper(other: str, published: float) -> None:
    first = "A man is playing a guitar."
    assert round(dice_coefficient(first, other), 3) == published
    assert dice_coefficient(other, first) == dice_coefficient(first, other)


def test_words() -> None:
    assert dice_coefficient("a a b", "b b c") == 2 * 1 / 4  # sets, not bags
    assert dice_coefficient("The U.S. don't!", "(the) u.s, 'Don't'") == 1.0
    assert dice_coefficient("U.S.", "us u s") == 0.0
    assert dice_coefficient("Straße, 1.5 —", "STRASSE 1 5") == 0.0
    assert dice_coefficient("?!", "...") == 1.0
    assert dice_coefficient("?!", "word") == 0.0


# Second sentences for "a b c d", three for each of the coefficients 0, 2/5, 2/3, 6/7 and 1. In
# each three the first is nearest and the third farthest; then the gold scores.
BY_HAND = {
    "e": 3, "f": 2, "g": 1,
    "a": 1, "b": 2, "c": 3,
    "a b": 3, "b c": 1, "c d": 2,
    "a b c": 1, "b c d": 3, "c d a": 2,
    "D c b a": 5, "a, b c d": 5, "a b c d.": 0,
}  # fmt: skip


def encode_by_hand(sentences: list[str]) -> np.ndarray:
    places = [[*BY_HAND].index(each) % 3 + 1 if each in BY_HAND else 0 for each in sentences]
    return np.stack([np.cos(places), np.sin(places)], axis=1)


def test_quintiles_by_hand() -> None:
    pairs = [STSPair("a b c d", second, gold) for second, gold in BY_HAND.items()]
    quintiles = evaluate_by_dice(encode_by_hand, pairs[::-1])
    assert [(each.dice_from, each.dice_to, each.pairs) for each in quintiles] == [
        (value, value, 3) for value in (0, 2 / 5, 2 / 3, 6 / 7, 1)
    ]
    # 1 − 6·Σd² / (n·(n² − 1)), the last with a tie.
    spearman = [each.spearman for each in quintiles]
    assert spearman == pytest.approx([1, -1, 1 - 12 / 24, 1 - 36 / 24, 0.75**0.5])
    similarities = np.cos([1.0, 2.0, 3.0])
    assert quintiles[4].pearson == pytest.approx(stats.pearsonr(similarities, [5, 5, 0]).statistic)


def toy_pairs(count: int) -> list[STSPair]:
    draw = random.Random(0)
    sentences = [" ".join(draw.choices("abcdefgh", k=4)) for _ in range(2 * count)]
    scores = [draw.uniform(0, 5) for _ in range(count)]
    return [STSPair(*each) for each in zip(sentences[::2], sentences[1::2], scores, strict=True)]


def counts_of_letters(sentences: list[str]) -> np.ndarray:
    letters = [[sentence.count(letter) for letter in "abcdefgh"] for sentence in sentences]
    return np.array(letters) * np.geomspace(1, 3, 8)


def test_each_quintile_is_correlated_by_itself() -> None:
    pairs = toy_pairs(103)
    quintiles = evaluate_by_dice(counts_of_letters, pairs)
    assert sum(each.pairs for each in quintiles) == 103
    assert {each.pairs for each in quintiles} == {20, 21}
    edges = [edge for each in quintiles for edge in (each.dice_from, each.dice_to)]
    assert edges == sorted(edges)
    # The pairs below the first quintile's end are in it whatever the order of ties.
    coefficients = np.array([dice_coefficient(pair.first, pair.second) for pair in pairs])
    assert edges == list(np.sort(coefficients)[[0, 19, 20, 40, 41, 60, 61, 81, 82, 102]])


def test_order_of_pairs_and_scale_of_scores_change_nothing() -> None:
    pairs = toy_pairs(60)
    shuffled = random.Random(1).sample(pairs, len(pairs))
    quintiles = evaluate_by_dice(counts_of_letters, pairs)
    for one, other in zip(quintiles, evaluate_by_dice(counts_of_letters, shuffled), strict=True):
        assert (one.dice_from, one.dice_to, one.pairs) == (
            other.dice_from,
            other.dice_to,
            other.pairs,
        )
        assert one.spearman == pytest.approx(other.spearman)
        assert one.pearson == pytest.approx(other.pearson)


def test_too_few_pairs() -> None:
    with pytest.raises(ValueError, match="expected at least 10, received 9"):
        evaluate_by_dice(encode_by_hand, [STSPair("a", "b", 1)] * 9)
