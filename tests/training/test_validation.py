"""The metrics of an encoder, in cases that can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from use_st5.training.tasks import INFERENCE, LABELS, PAIRS, SCORED_PAIRS, TEXTS
from use_st5.training.validation import ValidationSet, main_score, ridge_classes, scores_of

ANGLES = {"a": 0.0, "b": 0.1, "c": 0.3, "d": 1.0, "e": 2.0}


def encode(texts: list[str]) -> np.ndarray:
    """A direction for each text."""
    angles = np.array([ANGLES[text] for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_the_rank_of_what_belongs_to_a_text() -> None:
    # a: c is the nearest of c, d, e. b: d is second, behind c. d has two answers; c comes first.
    pairs = [("a", "c"), ("b", "d"), ("d", "c"), ("d", "e")]
    rows = [{"anchor": query, "positive": answer} for query, answer in pairs]
    found = ValidationSet("pairs", PAIRS, rows).scores(encode)
    # d is a candidate itself, as the answer of b, and is no answer of d: so c is second.
    assert found["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)
    assert (found["accuracy@1"], found["accuracy@10"]) == (pytest.approx(1 / 3), 1.0)


def test_hard_negatives_are_candidates_of_every_query() -> None:
    """A negative counts as an answer if it answers the same query in another row."""
    rows = [
        {"anchor": "a", "positive": "c", "negative": "b"},
        {"anchor": "e", "positive": "d", "negative": "b", "negative_2": "c"},
    ]
    found = ValidationSet("pairs", PAIRS, rows).scores(encode)
    # a: b is nearer than c. e: d is the first of d, c and b.
    assert found == {"mrr": pytest.approx((1 / 2 + 1) / 2), "accuracy@1": 0.5, "accuracy@10": 1.0}
    rows.append({"anchor": "a", "positive": "b", "negative": "d"})
    found = ValidationSet("pairs", PAIRS, rows).scores(encode)
    assert found["mrr"] == 1.0


def test_the_best_of_several_answers_counts() -> None:
    """a: b is the first of b, c, d and e, and its other answer e is the last."""
    pairs = [("a", "e"), ("a", "b"), ("e", "d"), ("d", "c")]
    rows = [{"anchor": query, "positive": answer} for query, answer in pairs]
    found = ValidationSet("pairs", PAIRS, rows).scores(encode)
    # The queries e and d are candidates themselves, and come before their answers.
    assert found["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)


def test_one_vector_for_all_finds_nothing() -> None:
    rows = [{"anchor": f"a{n}", "positive": f"p{n}"} for n in range(20)]
    found = ValidationSet("pairs", PAIRS, rows).scores(lambda texts: np.ones((len(texts), 3)))
    assert found["mrr"] == pytest.approx(1 / 10.5)
    assert found["accuracy@1"] == 0


def test_correlations_with_the_scores() -> None:
    rows = [
        {"sentence1": "a", "sentence2": other, "score": score}
        for other, score in zip("bcde", (1.0, 0.9, 0.2, 0.1), strict=True)
    ]
    found = ValidationSet("sts", SCORED_PAIRS, rows).scores(encode)
    assert found["spearman"] == pytest.approx(1.0)
    cosines = np.cos([0.1, 0.3, 1.0, 2.0])
    assert found["pearson"] == pytest.approx(np.corrcoef(cosines, [1, 0.9, 0.2, 0.1])[0, 1])


def test_the_second_half_of_a_text_is_found_by_the_first() -> None:
    rows = [{"text": "a b"}, {"text": "d c"}]
    assert ValidationSet("t", TEXTS, rows).scores(encode)["mrr"] == pytest.approx(1.0)


def test_ridge_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="needs the extra evaluation")
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=150)
    points = rng.standard_normal((150, 20)) + 0.7 * labels[:, None] * (np.arange(20) < 3)
    known, asked = points[:100], points[100:]
    found = ridge_classes(known, labels[:100], asked, 3)
    scaled = [
        (part - known.mean(axis=0)) / known.std(axis=0) / np.sqrt(20) for part in (known, asked)
    ]
    peer = linear_model.RidgeClassifier(alpha=1.0).fit(scaled[0], labels[:100])
    assert (found == peer.predict(scaled[1])).mean() > 0.9
    assert (found == labels[100:]).mean() > 0.5


@pytest.mark.parametrize("kind", [LABELS, INFERENCE], ids=lambda kind: kind.name)
def test_labels_that_the_vectors_tell_apart(kind: object) -> None:
    rng = np.random.default_rng(0)
    vectors = {str(n): rng.standard_normal(8) for n in range(600)}
    keys = kind.texts
    rows = []
    for n in range(0, 600, len(keys)):
        texts = {key: str(n + place) for place, key in enumerate(keys)}
        side = sum(vectors[text][0] for text in texts.values()) > 0
        rows.append({**texts, "label": "yes" if side else "no"})
    whole = ValidationSet("x", kind, rows[-100:], rows[:-100])
    found = whole.scores(lambda texts: np.array([vectors[text] for text in texts]))
    assert found["accuracy"] > 0.8


def test_several_sets_count_alike() -> None:
    rows = [{"anchor": "a", "positive": "b"}, {"anchor": "e", "positive": "d"}]
    one, two = ValidationSet("one", PAIRS, rows), ValidationSet("two", PAIRS, rows[:1])
    found = scores_of([one, two], encode)
    assert main_score([one, two]) == "mean"
    assert found["mean"] == pytest.approx((found["one_mrr"] + found["two_mrr"]) / 2)
    assert main_score([one]) == "mrr"
    assert scores_of([one], encode) == one.scores(encode)
    assert scores_of([], encode) == {}


def test_texts_are_measured_with_their_prompts() -> None:
    asked: list[str] = []

    def noted(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return encode([text[-1] for text in texts])

    rows = [{"anchor": "a", "positive": "b"}, {"anchor": "d", "positive": "e"}]
    for prompts, expected in (
        ({"anchor": "q: ", "positive": "p: "}, ["q: a", "q: d", "p: b", "p: e"]),
        ({"anchor": "q: "}, ["q: a", "q: d", "b", "e"]),
    ):
        asked.clear()
        found = ValidationSet("pairs", PAIRS, rows, prompts=prompts)
        assert found.scores(noted) == ValidationSet("pairs", PAIRS, rows).scores(encode)
        assert asked == expected
    asked.clear()
    ValidationSet("t", TEXTS, [{"text": "a b"}, {"text": "d c"}], prompts={"text": "t: "}).scores(
        noted
    )
    assert asked == ["t: a", "t: d", "t: b", "t: c"], "both halves have it"
