from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from use_st5.evaluation.bucc.protocol import best_threshold, evaluate_bucc
from use_st5.evaluation.bucc.readers import BUCCSet

# The margins with two neighbours are those of tests/search/test_bitext.py: (y, c) 4/3, (x, b) 6/5.
VECTORS = {
    "x": [1.0, 0, 0, 0],
    "y": [0, 1.0, 0, 0],
    "a": [0.8, 0.6, 0, 0],
    "b": [0.6, 0, 0.8, 0],
    "c": [0, 0.6, 0, 0.8],
}


def encode(sentences: list[str]) -> np.ndarray:
    return np.array([VECTORS[sentence] for sentence in sentences])


def texts(*gold: tuple[str, str], english: str = "abc") -> BUCCSet:
    numbered = {f"en-{number}": sentence for number, sentence in enumerate(english)}
    return BUCCSet({"zh-0": "x", "zh-1": "y"}, numbered, frozenset(gold))


def test_the_best_threshold_lies_between_two_margins() -> None:
    score = evaluate_bucc(encode, texts(("zh-1", "en-2")), k=2)
    assert score.threshold == pytest.approx((4 / 3 + 6 / 5) / 2)
    assert (score.precision, score.recall, score.f1) == (1.0, 1.0, 1.0)


def test_a_threshold_that_is_given_is_used() -> None:
    """Both pairs are extracted, one is gold; so is another pair, which is not mined."""
    data = texts(("zh-1", "en-2"), ("zh-0", "en-0"), ("zh-1", "en-0"))
    score = evaluate_bucc(encode, data, threshold=1.0, k=2)
    assert (score.threshold, score.precision, score.recall) == (1.0, 1 / 2, 1 / 3)
    assert score.f1 == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))


def test_nothing_is_extracted() -> None:
    score = evaluate_bucc(encode, texts(("zh-1", "en-2")), threshold=9.0, k=2)
    assert (score.precision, score.recall, score.f1) == (0.0, 0.0, 0.0)


def test_a_sentence_with_two_ids_is_mined_once_and_dropped() -> None:
    """The pair (y, c) is mined, but c is en-2 and en-3: (x, b) is left, the gold remains."""
    data = texts(("zh-1", "en-2"), ("zh-0", "en-1"), english="abcc")
    score = evaluate_bucc(encode, data, k=2)
    assert score.threshold == pytest.approx(6 / 5)
    assert (score.precision, score.recall) == (1.0, 0.5)


def test_thresholds_by_hand() -> None:
    # F1 after each pair with two gold ones: 2/3, 2/4, 4/5, 4/6.
    right = np.array([True, False, True, False])
    assert best_threshold(np.array([5.0, 4, 3, 2]), right, 2) == 2.5
    # With four gold ones: 2/5, 2/6, 4/7, 4/8; without the last pair the third is the end.
    assert best_threshold(np.array([5.0, 4, 3]), right[:3], 4) == 3.0
    # The first two cannot be told apart: 2/4 with both, 4/5 with three.
    assert best_threshold(np.array([5.0, 5, 3, 2]), right, 2) == 2.5
    # F1 is 2/2 after the first, but only 2/3 is reachable.
    assert best_threshold(np.array([5.0, 5, 3, 2]), np.array([True, False, False, False]), 1) == 4.0
    assert best_threshold(np.array([5.0, 4]), np.array([False, False]), 3) == 0.0
    assert best_threshold(np.array([]), np.array([], dtype=bool), 3) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_has_a_larger_f1(seed: int) -> None:
    """Against scikit-learn's curve; gold pairs that were not mined stand below all margins."""
    generator = np.random.default_rng(seed)
    margins = np.sort(generator.integers(1, 30, size=60) / 8)[::-1]
    right = generator.random(60) < margins / margins.max()
    unmined = 7
    threshold = best_threshold(margins, right, int(right.sum()) + unmined)
    labels = np.append(right, np.ones(unmined, bool))
    scores = np.append(margins, np.zeros(unmined))
    precision, recall, thresholds = metrics.precision_recall_curve(labels, scores)
    with np.errstate(invalid="ignore"):
        reachable = (2 * precision * recall / (precision + recall))[:-1][thresholds > 0]
    assert metrics.f1_score(labels, scores >= threshold) == pytest.approx(np.nanmax(reachable))


def test_scores_against_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((90, 8)) + 0.5
    vectors[60:80] = vectors[:20] + 0.3 * generator.standard_normal((20, 8))
    foreign = {f"zh-{row}": f"f{row}" for row in range(40)}
    english = {f"en-{row}": f"f{row}" for row in range(40, 90)}
    gold = frozenset((f"zh-{row}", f"en-{row + 60}") for row in range(20))

    def look_up(sentences: list[str]) -> np.ndarray:
        return vectors[[int(sentence[1:]) for sentence in sentences]]

    best = evaluate_bucc(look_up, BUCCSet(foreign, english, gold))
    assert 0.5 < best.f1 < 1.0
    for threshold in np.linspace(0.9, 1.4, 30):
        score = evaluate_bucc(look_up, BUCCSet(foreign, english, gold), threshold=threshold)
        assert score.f1 <= best.f1 + 1e-12
        assert score.f1 == pytest.approx(
            2 * score.precision * score.recall / max(score.precision + score.recall, 1e-9)
        )
