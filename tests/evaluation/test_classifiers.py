from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from use_st5.evaluation.classifiers import (
    BLOCK,
    Classifier,
    Fold,
    LabelledFeatures,
    PairFeatures,
    SklearnClassifier,
    TrainedClassifier,
)
from use_st5.evaluation.senteval_classifier import SentEvalClassifier


def test_rows_are_read_as_float32() -> None:
    array = np.arange(10, dtype=np.float64).reshape(5, 2)
    rows = np.array([3, 0, 3])
    read = LabelledFeatures(array, np.zeros(5, int)).read(rows)
    assert read.dtype == np.float32
    assert read.tolist() == [[6, 7], [0, 1], [6, 7]]
    pairs = PairFeatures(array[:, :1], np.ones((5, 1)))
    computed = LabelledFeatures(pairs, np.zeros(5, int)).read(rows)
    assert computed.dtype == np.float32
    assert computed.tolist() == [[6, 1, 5, 6], [0, 1, 1, 0], [6, 1, 5, 6]]


def test_arrays_lie_in_one_block_as_float32_and_labels_as_int64() -> None:
    data = LabelledFeatures(np.arange(6.0).reshape(2, 3).T, np.array([True, False, True]))
    assert data.features.dtype == np.float32
    assert data.features.flags.c_contiguous
    assert (data.labels.dtype, data.labels.tolist()) == (np.int64, [1, 0, 1])


def test_features_of_pairs_by_hand() -> None:
    features = PairFeatures(np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([[3.0, 1.0], [0.5, 4.0]]))
    assert features.shape == (2, 8)
    assert features[np.array([1, 0])].tolist() == [
        [0.5, 0.0, 0.5, 4.0, 0.0, 4.0, 0.25, 0.0],
        [1.0, -2.0, 3.0, 1.0, 2.0, 3.0, 3.0, -2.0],
    ]
    assert features[:].dtype == np.float32


def test_only_the_rows_asked_for_are_made() -> None:
    # The features of all rows would take 400 GB. (u and v are views of one row.)
    vectors = np.broadcast_to(np.float32(0.5), (25_000_000, 1024))
    features = PairFeatures(vectors, vectors)
    assert features.shape == (25_000_000, 4096)
    assert features[np.array([24_999_999])].sum() == 1024 * (0.5 + 0.5 + 0.0 + 0.25)


def test_swapping_a_pair_swaps_the_embeddings_alone() -> None:
    generator = np.random.default_rng(0)
    u, v = generator.normal(size=(2, 5, 3))
    one, other = PairFeatures(u, v)[:], PairFeatures(v, u)[:]
    assert np.array_equal(one[:, :3], other[:, 3:6])
    assert np.array_equal(one[:, 6:], other[:, 6:])


def test_one_layer_by_hand() -> None:
    data = LabelledFeatures(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.zeros(3, int))
    layer = (np.array([[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]]), np.array([0.0, 0.0, 0.5]))
    trained = TrainedClassifier(0.5, *layer)
    assert trained.predict(data).tolist() == [0, 1, 2]
    assert trained.predict(data, np.array([2, 0])).tolist() == [2, 0]


def test_blocks_join() -> None:
    rows = 2 * BLOCK + 3
    signs = np.where(np.arange(rows) % 5, 1.0, -1.0)
    data = LabelledFeatures(signs[:, None], np.zeros(rows, int))
    trained = TrainedClassifier(0.5, np.array([[-1.0], [1.0]]), np.zeros(2))
    assert np.array_equal(trained.predict(data), signs > 0)


@pytest.mark.parametrize("classes", [2, 4])
def test_it_predicts_what_scikit_learn_predicts(classes: int) -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 8)).astype(np.float32)
    noise = random.normal(size=(300, classes))
    labels = (features @ random.normal(size=(8, classes)) + noise).argmax(axis=1)
    data = LabelledFeatures(features, labels)
    fold = Fold(np.arange(200), np.arange(200, 300))
    trained = SklearnClassifier().fit(data, [fold], [0.25, 8.0], classes=classes)[0]
    for strength, ours in zip((0.25, 8.0), trained, strict=True):
        peer = LogisticRegression(C=strength, max_iter=1000).fit(features[:200], labels[:200])
        agreement = np.mean(ours.predict(data) == peer.predict(features))
        assert agreement > 0.99  # both stop at a tolerance
        expected = peer.score(features[200:], labels[200:])
        assert ours.dev_accuracy == pytest.approx(expected, abs=0.01)


def test_a_class_without_training_rows_is_never_predicted() -> None:
    features = np.array([[-1.0], [1.0], [5.0]])
    data = LabelledFeatures(features, np.array([0, 2, 1]))
    trained = SklearnClassifier().fit(data, [Fold(np.array([0, 1]))], [1.0], classes=3)[0][0]
    assert trained.predict(data).tolist() == [0, 2, 2]
    assert np.isnan(trained.dev_accuracy)


def blas_threads() -> set[int]:
    pools = threadpoolctl.threadpool_info()
    return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}


def test_it_trains_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    data, seen = LabelledFeatures(np.array([[-1.0], [1.0]]), np.array([0, 1])), []

    class Spy(LogisticRegression):
        def fit(self, *data: np.ndarray) -> LogisticRegression:
            seen.append(blas_threads())
            return super().fit(*data)

    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", Spy)
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        SklearnClassifier().fit(data, [Fold(np.arange(2))], [1.0], classes=2)
        assert seen == [{1}]
        assert blas_threads() == {2}


GRID = (0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Scripted(Classifier):
    """Records the calls of `fit`; for regularisation r, its dev accuracy is `accuracies[r]`.

    It predicts class 1 if the feature is positive.
    """

    accuracies: dict[float, float]
    folds: int = 4
    seed: int = 7
    asked: list[tuple[list[Fold], list[float]]] = field(default_factory=list)

    name = "scripted"
    title = "a script"
    grids = {"inner_kfold": GRID, "kfold": GRID, "split": GRID}

    def options(self) -> dict[str, Any]:
        return {}

    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[float],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
    ) -> list[list[TrainedClassifier]]:
        self.asked.append(([*folds], [*grid]))
        layer = (np.array([[0.0], [1.0]]), np.zeros(2))
        return [
            [TrainedClassifier(self.accuracies[value], *layer) for value in grid] for _ in folds
        ]


def positive(rows: int, *, wrong: int) -> LabelledFeatures:
    """Features ±1 with their sign as class; the first `wrong` rows have the other class."""
    features = np.where(np.arange(rows) % 3, 1.0, -1.0)[:, None]
    labels = (features[:, 0] > 0).astype(int)
    labels[:wrong] = 1 - labels[:wrong]
    return LabelledFeatures(features, labels)


SCRIPT = {0.1: 0.5, 0.2: 0.91234, 0.3: 0.91231}  # the last two are equal in rounded percents


def test_inner_kfold_has_scikit_learns_folds_of_seed_1111_inside_each_other() -> None:
    classifier, data = Scripted(SCRIPT), positive(50, wrong=4)
    found = classifier.inner_kfold(data)
    splitter = StratifiedKFold(n_splits=4, shuffle=True, random_state=1111)
    assert len(classifier.asked) == 2 * 4
    accuracies = []
    for number, (train, test) in enumerate(splitter.split(data.features, data.labels)):
        inner, grid = classifier.asked[2 * number]
        assert grid == [*GRID]
        expected = splitter.split(data.features[train], data.labels[train])
        for fold, (inner_train, inner_test) in zip(inner, expected, strict=True):
            assert np.array_equal(fold.train, train[inner_train])
            assert np.array_equal(fold.dev, train[inner_test])
        (final,), grid = classifier.asked[2 * number + 1]
        assert np.array_equal(final.train, train)
        assert final.dev is None
        assert grid == [0.2]  # the first of equals
        right = (data.features[test, 0] > 0) == data.labels[test]
        accuracies.append(round(100 * right.mean(), 2))
    assert found.test_accuracy == pytest.approx(round(np.mean(accuracies), 2) / 100)
    assert found.dev_accuracy == 0.9123
    assert found.regularization == (0.2,) * 4
    assert np.array_equal(found.predictions, data.features[:, 0] > 0)


def test_kfold_has_folds_of_its_own_seed_and_tests_once() -> None:
    classifier, data, test = Scripted(SCRIPT), positive(50, wrong=4), positive(30, wrong=3)
    found = classifier.kfold(train=data, test=test)
    (folds, _), ((final,), grid) = classifier.asked
    splitter = StratifiedKFold(n_splits=4, shuffle=True, random_state=7)
    expected = splitter.split(data.features, data.labels)
    for fold, (train, dev) in zip(folds, expected, strict=True):
        assert np.array_equal(fold.train, train)
        assert np.array_equal(fold.dev, dev)
    assert np.array_equal(final.train, np.arange(50))
    assert final.dev is None
    assert grid == [0.2]
    assert (found.test_accuracy, found.dev_accuracy) == (0.9, 0.9123)


def test_split_keeps_the_classifier_that_the_dev_set_chose() -> None:
    classifier = Scripted({0.1: 0.5, 0.2: 0.6, 0.3: 0.8})
    sets = {"train": positive(30, wrong=0), "dev": positive(20, wrong=2)}
    found = classifier.split(**sets, test=positive(40, wrong=10))
    (((fold,), _),) = classifier.asked
    assert (len(fold.train), len(fold.dev)) == (30, 20)
    assert (found.test_accuracy, found.dev_accuracy) == (0.75, 0.8)
    assert found.regularization == (0.3,)


def test_training_again_would_give_the_classifier_that_split_keeps() -> None:
    random = np.random.default_rng(0)
    train, dev = (
        LabelledFeatures(random.normal(size=(rows, 5)), random.integers(0, 3, rows))
        for rows in (150, 60)
    )
    classifier = SentEvalClassifier()
    folds = [Fold(np.arange(150), np.arange(60))]
    together = classifier.fit(train, folds, [1e-5, 1e-2], classes=3, dev=dev)[0][1]
    (alone,) = classifier.fit(train, folds, [1e-2], classes=3, dev=dev)[0]
    assert alone.dev_accuracy == together.dev_accuracy
    assert np.array_equal(alone.predict(dev), together.predict(dev))


def test_a_rare_class_is_refused() -> None:
    few = LabelledFeatures(np.zeros((12, 1)), np.array([0] * 9 + [2] * 3))
    with pytest.raises(ValueError, match=r"at least 4 rows of each class.* has 3"):
        Scripted(SCRIPT).inner_kfold(few)
    with pytest.raises(ValueError, match="at least 4 rows"):
        Scripted(SCRIPT).kfold(train=few, test=few)
