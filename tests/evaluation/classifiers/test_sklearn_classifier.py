from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import threadpoolctl
from sklearn.linear_model import LogisticRegression

from use_st5.evaluation.classifiers import LabelledFeatures, SklearnClassifier
from use_st5.evaluation.classifiers.classifier import Fold
from use_st5.evaluation.task import Progress


@pytest.mark.parametrize("classes", [2, 4])
def test_it_predicts_what_scikit_learn_predicts(classes: int) -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 8)).astype(np.float32)
    noise = random.normal(size=(300, classes))
    labels = (features @ random.normal(size=(8, classes)) + noise).argmax(axis=1)
    data = LabelledFeatures(features, labels)
    fold = Fold(np.arange(200), np.arange(200, 300))
    trained = SklearnClassifier().fit(data, [fold], [[0.25, 8.0]], classes=classes)[0]
    for strength, ours in zip((0.25, 8.0), trained, strict=True):
        peer = LogisticRegression(C=strength, max_iter=1000).fit(features[:200], labels[:200])
        agreement = np.mean(ours.predict(data) == peer.predict(features))
        assert agreement > 0.99  # both stop at a tolerance
        expected = peer.score(features[200:], labels[200:])
        assert ours.dev_accuracy == pytest.approx(expected, abs=0.01)


def test_a_class_without_training_rows_is_never_predicted() -> None:
    features = np.array([[-1.0], [1.0], [5.0]])
    data = LabelledFeatures(features, np.array([0, 2, 1]))
    trained = SklearnClassifier().fit(data, [Fold(np.array([0, 1]))], [[1.0]], classes=3)[0][0]
    assert trained.predict(data).tolist() == [0, 2, 2]
    assert np.isnan(trained.dev_accuracy)


class Spy(Progress):
    """Notes how many threads BLAS has while the folds are trained."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def track(self, steps: Iterable, description: str, total: int | None = None) -> Iterator:
        for step in steps:
            pools = threadpoolctl.threadpool_info()
            self.threads |= {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}
            yield step


def test_it_trains_with_one_thread() -> None:
    data = LabelledFeatures(np.array([[-1.0], [1.0]]), np.array([0, 1]))
    spy = Spy()
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        SklearnClassifier().fit(data, [Fold(np.arange(2))], [[1.0]], classes=2, progress=spy)
        assert spy.threads == {1}
        pools = threadpoolctl.threadpool_info()
        assert {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"} == {2}
