from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from use_st5.evaluation import relatedness
from use_st5.evaluation.relatedness import predict_relatedness, soft_labels


def test_soft_labels_by_hand() -> None:
    found = soft_labels(np.array([0.0, 0.25, 3.6, 5.0]))
    expected = [
        [1, 0, 0, 0, 0, 0],
        [0.75, 0.25, 0, 0, 0, 0],
        [0, 0, 0, 0.4, 0.6, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_soft_labels_are_distributions_with_the_scores_as_means() -> None:
    scores = np.random.default_rng(0).uniform(0, 5, 1000)
    found = soft_labels(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found @ np.arange(6), scores)
    assert ((found > 0).sum(axis=1) <= 2).all()


def test_gradient_is_that_of_the_mean_squared_error() -> None:
    generator = np.random.default_rng(1)
    features = generator.normal(size=(7, 4))
    targets = soft_labels(generator.uniform(0, 5, 7))

    def loss(weights: np.ndarray) -> float:
        powers = np.exp(features @ weights.reshape(4, 6))
        return float(np.mean((powers / powers.sum(axis=1, keepdims=True) - targets) ** 2))

    start = generator.normal(size=24)
    numeric = optimize.approx_fprime(start, loss, 1e-6)
    found = relatedness._gradient(features, targets, start.reshape(4, 6))
    np.testing.assert_allclose(found.ravel(), numeric, atol=1e-6)


def toy(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and features that show how near each whole score is, for a linear layer to learn."""
    generator = np.random.default_rng(seed)
    scores = generator.uniform(0, 5, count)
    noise = generator.normal(size=(count, 8), scale=0.3)
    noise[:, :6] += 5 * soft_labels(scores)
    return noise, scores


def test_scores_are_learnt_down_to_zero() -> None:
    train, held_out, (features, scores) = toy(0, 400), toy(1, 40), toy(2, 200)
    found = predict_relatedness(train, held_out, features, seed=3)
    assert found.shape == (200,)
    assert ((found >= 0) & (found <= 5)).all()
    assert stats.pearsonr(found, scores).statistic > 0.98
    # With SentEval's classes 1 … 5 a prediction could not be below 1.
    assert found[scores < 0.5].mean() < 0.7
    assert np.array_equal(found, predict_relatedness(train, held_out, features, seed=3))


def test_learning_ends_at_the_fourth_time_without_improvement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best weights so far count; the counter is not reset by an improvement."""
    slopes = [1.0, -1.0, -1.0, 2.0, -1.0, -1.0, 3.0]
    yielded = []

    def learn(*_: object) -> object:
        for slope in slopes:
            yielded.append(slope)
            weights = np.zeros((2, 6))
            weights[0, 5] = slope
            yield weights

    monkeypatch.setattr(relatedness, "_learn", learn)
    monkeypatch.setattr(relatedness, "correlation", lambda _, found, __: found[1] - found[0])
    features = np.array([[-1.0], [1.0]])
    data = (features, np.array([1.0, 4.0]))
    found = predict_relatedness(data, data, features)
    assert yielded == slopes[:6]  # ends before the better 3.0
    expected = 5 * np.exp(2.0) / (5 + np.exp(2.0)) + 10 / (5 + np.exp(2.0))
    assert found[1] == pytest.approx(expected, rel=1e-6)


def test_an_undefined_correlation_is_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that predict the same for all count as −1: they are kept if no others are better."""
    same, falling = np.zeros((2, 6)), np.zeros((2, 6))
    falling[0, 5] = -1.0
    features = np.array([[-1.0], [1.0]])
    data = (features, np.array([1.0, 4.0]))
    for learnt, best in (([same], same), ([same, falling], same)):
        monkeypatch.setattr(relatedness, "_learn", lambda *_, learnt=learnt: iter(learnt))
        found = predict_relatedness(data, data, features)
        np.testing.assert_array_equal(found, relatedness._means(features, best))
