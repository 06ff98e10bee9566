from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from use_st5.evaluation.sts import STSPair
from use_st5.evaluation.sts.dice import dice_coefficient, evaluate_by_dice


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
