"""Predicting graded relatedness from features of a pair: soft labels, as SentEval does it.

Tai, Socher and Manning, "Improved Semantic Representations From Tree-Structured Long Short-Term
Memory Networks" (2015), section 4.2; senteval/tools/relatedness.py. A score y becomes a
distribution over whole scores whose mean is y; a linear layer with a softmax learns it by squared
error. SentEval uses the classes 1 … 5, made for SICK, for STS-B too. Then targets of scores below 1
are not distributions, and a score of 0, whose target is all zeros, is learnt as the uniform
distribution, of mean 3. Here the classes are 0 … 5. The rest is as in SentEval: Adam, batches of
64, and Pearson's correlation on held-out pairs after every 50 epochs. The best weights are kept,
and training ends at the fourth evaluation without improvement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import softmax

from use_st5.evaluation.classifiers import one_blas_thread
from use_st5.evaluation.senteval_classifier import Adam
from use_st5.evaluation.sts import correlation

_HIGHEST = 5
_BATCH = 64
_EPOCHS_BETWEEN = 50
_MOST_EPOCHS = 1000
_TENACITY = 3  # times without improvement that are allowed


def soft_labels(scores: np.ndarray) -> np.ndarray:
    """Distributions `[pairs, 6]` over the scores 0 … 5 with the means `scores` `[pairs]`.

    The two neighbouring whole scores share the weight, by their distances (Tai et al., section
    4.2).
    """
    distances = np.abs(scores[:, np.newaxis] - np.arange(_HIGHEST + 1))
    return np.maximum(1.0 - distances, 0.0)


def predict_relatedness(
    train: tuple[np.ndarray, np.ndarray],
    held_out: tuple[np.ndarray, np.ndarray],
    features: np.ndarray,
    *,
    seed: int = 1111,
) -> np.ndarray:
    """Learns scores from features and predicts the scores of other pairs.

    Args:
        train: Features `[pairs, dim]` and scores `[pairs]` from 0 to 5 to learn from.
        held_out: Features and scores of other pairs, which decide when training ends.
        features: Features of the pairs to predict, `[pairs, dim]`.
        seed: Seed of the initial weights and of the order of the pairs.

    Returns:
        The predicted scores `[pairs]`, from 0 to 5.
    """
    best: Any = None
    highest, misses = -1.0, 0
    with one_blas_thread():
        for weights in _learn(train[0], soft_labels(train[1]), seed):
            pearson = correlation(stats.pearsonr, _means(held_out[0], weights), held_out[1])
            if pearson > highest or best is None:
                best = weights.copy()
            if pearson > highest:
                highest = pearson
            else:
                misses += 1
            if misses > _TENACITY:
                break
    return _means(features, best)


def _learn(features: np.ndarray, targets: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Yields the weights `[dim + 1, classes]`, bias last, every 50 epochs; always one array."""
    generator = np.random.default_rng(seed)
    features, targets = _with_bias(features), targets.astype(np.float32)
    bound = (features.shape[1] - 1) ** -0.5  # as torch.nn.Linear is initialised
    weights = generator.uniform(-bound, bound, (features.shape[1], targets.shape[1]))
    weights = weights.astype(np.float32)
    optimizer = Adam(weights, np.zeros_like(weights))
    for epoch in range(1, _MOST_EPOCHS + 1):
        order = generator.permutation(len(features))
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            optimizer.step(_gradient(features[rows], targets[rows], optimizer.parameters))
        if epoch % _EPOCHS_BETWEEN == 0:
            yield optimizer.parameters


def _gradient(features: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The gradient of the mean squared error of the probabilities."""
    probabilities = softmax(features @ weights, axis=1)
    slope = np.float32(2 / targets.size) * (probabilities - targets) * probabilities
    return features.T @ (slope - probabilities * slope.sum(axis=1, keepdims=True))


def _means(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return softmax(_with_bias(features) @ weights, axis=1) @ np.arange(weights.shape[1])


def _with_bias(features: np.ndarray) -> np.ndarray:
    return np.pad(np.asarray(features, np.float32), ((0, 0), (0, 1)), constant_values=1.0)
