"""Classifiers on frozen embeddings, and SentEval's ways to validate them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from use_st5.evaluation.classifiers import (
    BLOCK,
    LabelledFeatures,
    PairFeatures,
    RMSprop,
    SentEvalClassifier,
    Trained,
    _cross_entropy_gradient,
    predict,
    predict_relatedness,
    soft_labels,
    torch_linear,
)


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


def test_only_the_rows_asked_for_are_made() -> None:
    # The features of all rows would take 400 GB. (u and v are views of one row.)
    vectors = np.broadcast_to(np.float32(0.5), (25_000_000, 1024))
    features = PairFeatures(vectors, vectors)
    assert features.shape == (25_000_000, 4096)
    assert features[np.array([24_999_999])].sum() == 1024 * (0.5 + 0.5 + 0.0 + 0.25)


def test_one_layer_by_hand() -> None:
    data = LabelledFeatures(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.zeros(3, int))
    layer = np.array([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.5]])
    assert predict(layer, data).tolist() == [0, 1, 2]
    assert predict(np.stack([layer, -layer]), data, np.array([2, 0])).tolist() == [[2, 0], [0, 1]]


def test_blocks_join() -> None:
    rows = 2 * BLOCK + 3
    signs = np.where(np.arange(rows) % 5, 1.0, -1.0)
    data = LabelledFeatures(signs[:, None], np.zeros(rows, int))
    assert np.array_equal(predict(np.array([[-1.0, 0.0], [1.0, 0.0]]), data), signs > 0)


GRID = (0.1, 0.2, 0.3)


@dataclass(frozen=True, kw_only=True)
class Scripted(SentEvalClassifier):
    """Records the calls of `fit`; for regularisation r, its dev accuracy is `accuracies[r]`.

    It predicts class 1 if the feature is positive.
    """

    accuracies: dict[float, float]
    folds: int = 4
    seed: int = 7
    asked: list[tuple[list[Any], list[float]]] = field(default_factory=list)

    grid = GRID

    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Any],
        grid: Sequence[float],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
    ) -> list[list[Trained]]:
        self.asked.append(([*folds], [*grid]))
        layer = np.array([[0.0, 0.0], [1.0, 0.0]])
        return [[(self.accuracies[value], layer) for value in grid] for _ in folds]


def positive(rows: int, *, wrong: int) -> LabelledFeatures:
    """Features ±1 with their sign as class; the first `wrong` rows have the other class."""
    features = np.where(np.arange(rows) % 3, 1.0, -1.0)[:, None]
    labels = (features[:, 0] > 0).astype(int)
    labels[:wrong] = 1 - labels[:wrong]
    return LabelledFeatures(features, labels)


SCRIPT = {0.1: 0.5, 0.2: 0.91234, 0.3: 0.91231}  # the last two are equal in rounded percents


def test_inner_kfold_has_scikit_learns_folds_of_seed_1111_inside_each_other() -> None:
    classifier, data = Scripted(accuracies=SCRIPT), positive(50, wrong=4)
    found = classifier.inner_kfold(data)
    splitter = StratifiedKFold(n_splits=4, shuffle=True, random_state=1111)
    assert len(classifier.asked) == 2 * 4
    accuracies = []
    for number, (train, test) in enumerate(splitter.split(data.features, data.labels)):
        inner, grid = classifier.asked[2 * number]
        assert grid == [*GRID]
        expected = splitter.split(data.features[train], data.labels[train])
        for fold, (inner_train, inner_test) in zip(inner, expected, strict=True):
            assert np.array_equal(fold[0], train[inner_train])
            assert np.array_equal(fold[1], train[inner_test])
        (final,), grid = classifier.asked[2 * number + 1]
        assert np.array_equal(final[0], train)
        assert final[1] is None
        assert grid == [0.2]  # the first of equals
        right = (data.features[test, 0] > 0) == data.labels[test]
        accuracies.append(round(100 * right.mean(), 2))
    assert found.test_accuracy == pytest.approx(round(np.mean(accuracies), 2) / 100)
    assert found.dev_accuracy == 0.9123
    assert found.regularization == (0.2,) * 4
    assert np.array_equal(found.predictions, data.features[:, 0] > 0)


def test_kfold_has_folds_of_its_own_seed_and_tests_once() -> None:
    classifier, data, test = (
        Scripted(accuracies=SCRIPT),
        positive(50, wrong=4),
        positive(30, wrong=3),
    )
    found = classifier.kfold(train=data, test=test)
    (folds, _), ((final,), grid) = classifier.asked
    splitter = StratifiedKFold(n_splits=4, shuffle=True, random_state=7)
    expected = splitter.split(data.features, data.labels)
    for fold, (train, dev) in zip(folds, expected, strict=True):
        assert np.array_equal(fold[0], train)
        assert np.array_equal(fold[1], dev)
    assert np.array_equal(final[0], np.arange(50))
    assert final[1] is None
    assert grid == [0.2]
    assert (found.test_accuracy, found.dev_accuracy) == (0.9, 0.9123)


def test_split_keeps_the_classifier_that_the_dev_set_chose() -> None:
    classifier = Scripted(accuracies={0.1: 0.5, 0.2: 0.6, 0.3: 0.8})
    sets = {"train": positive(30, wrong=0), "dev": positive(20, wrong=2)}
    found = classifier.split(**sets, test=positive(40, wrong=10))
    (((fold,), _),) = classifier.asked
    assert (len(fold[0]), len(fold[1])) == (30, 20)
    assert (found.test_accuracy, found.dev_accuracy) == (0.75, 0.8)
    assert found.regularization == (0.3,)


def test_a_rare_class_is_refused() -> None:
    few = LabelledFeatures(np.zeros((12, 1)), np.array([0] * 9 + [2] * 3))
    with pytest.raises(ValueError, match=r"4 rows of each class.* received 3"):
        Scripted(accuracies=SCRIPT).inner_kfold(few)


def test_the_gradient_is_that_of_the_cross_entropy() -> None:
    random = np.random.default_rng(0)
    parameters, x, y = random.normal(size=(2, 3, 5)), random.normal(size=(8, 4)), np.arange(8) % 3
    gradient = np.empty_like(parameters)
    _cross_entropy_gradient(parameters, x, y, gradient)

    def loss(parameters: np.ndarray) -> float:
        outputs = [x @ each[:, :-1].T + each[:, -1] for each in parameters]
        return -sum(log_softmax(each, axis=1)[np.arange(8), y].mean() for each in outputs)

    for place in np.ndindex(parameters.shape):
        step = np.zeros_like(parameters)
        step[place] = 1e-6
        slope = (loss(parameters + step) - loss(parameters - step)) / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


def test_torch_draws_these_numbers() -> None:
    # torch 2.13: manual_seed(1111), Linear(3, 2), Linear(2, 2)
    random = np.random.RandomState(1111)
    layer = torch_linear(random, 3, 2)
    assert layer.dtype == np.float32
    assert layer.tolist() == [
        [-0.04549999535083771, -0.47922441363334656, 0.34750422835350037, -0.02067270688712597],
        [-0.11873110383749008, 0.5251538157463074, 0.11337392777204514, 0.5133672952651978],
    ]
    assert torch_linear(random, 2, 2)[:, -1].tolist() == [0.5298776030540466, 0.30914121866226196]


@pytest.mark.parametrize(
    ("inputs", "outputs", "seed"), [(512, 2, 0), (1, 1, 2**32 - 1), (7, 50, 1)]
)
def test_every_bit_is_torchs(seed: int, inputs: int, outputs: int) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    random = np.random.RandomState(seed)
    for size in ((inputs, outputs), (outputs, 6)):
        expected = torch.nn.Linear(*size)
        parameters = [expected.weight.detach().numpy(), expected.bias.detach().numpy()]
        assert np.array_equal(torch_linear(random, *size), np.column_stack(parameters))


def row(*numbers: float) -> np.ndarray:
    return np.array([numbers], np.float32)


def test_rmsprop_by_hand() -> None:
    # v = 0.01·16; the step is 0.01·4/0.4.
    rmsprop = RMSprop(row(2.0), row(0.5))
    rmsprop.step(row(3.0))
    assert rmsprop.parameters[0, 0] == pytest.approx(1.9, abs=1e-6)


FACTORS = [1e-5, 1e-2]


def noisy(rows: int = 230, dim: int = 6, classes: int = 3, *, seed: int = 0) -> LabelledFeatures:
    """Noisy classes, most of which a linear classifier can predict."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, dim)).astype(np.float32)
    scores = features @ random.normal(size=(dim, classes)) + 2 * random.normal(size=(rows, classes))
    return LabelledFeatures(features, scores.argmax(axis=1))


def torch_classifier(
    settings: SentEvalClassifier, data: LabelledFeatures, fold: Any, factor: float
) -> tuple[float, np.ndarray]:
    """SentEval's training as written with torch: the dev accuracy and the parameters."""
    torch = pytest.importorskip("torch")
    np.random.seed(settings.seed)  # noqa: NPY002 -- the generator that SentEval uses
    torch.manual_seed(settings.seed)
    inputs, classes = data.features.shape[1], 1 + int(data.labels.max())
    model = torch.nn.Linear(inputs, classes)
    kind = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[settings.optimizer]
    optimizer = kind(model.parameters(), weight_decay=factor)
    x, y = torch.from_numpy(data.features), torch.from_numpy(data.labels)
    train, dev = fold
    if dev is None:
        order = np.random.permutation(len(train))  # noqa: NPY002
        count = int(0.05 * len(train))
        train, dev = train[order[count:]], train[order[:count]]
    best, misses, epochs, kept = -1.0, 0, 0, np.empty(0)
    while misses <= settings.tenacity and epochs <= settings.max_epoch:
        for _ in range(settings.epoch_size):
            epochs += 1
            rows = train[np.random.permutation(len(train))]  # noqa: NPY002
            for batch in np.split(rows, range(settings.batch_size, len(rows), settings.batch_size)):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
                optimizer.step()
        with torch.no_grad():
            accuracy = (model(x[dev]).argmax(1) == y[dev]).double().mean().item()
        if accuracy > best:
            best = accuracy
            kept = np.column_stack([each.detach().numpy() for each in model.parameters()])
        else:
            misses += 1
    return best, kept


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimizer": "rmsprop", "batch_size": 32, "tenacity": 3, "epoch_size": 2, "seed": 5},
    ],
)
@pytest.mark.parametrize("held_out", [False, True])
def test_it_is_the_classifier_that_torch_trains(settings: dict[str, Any], held_out: bool) -> None:
    classifier, data = SentEvalClassifier(**settings), noisy()
    rows = np.random.default_rng(1).permutation(len(data))
    fold = (rows, None) if held_out else (rows[:180], rows[180:])
    (trained,) = classifier.fit(data, [fold], FACTORS, classes=3)
    for (accuracy, layer), factor in zip(trained, FACTORS, strict=True):
        expected, parameters = torch_classifier(classifier, data, fold, factor)
        assert accuracy == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose(layer, parameters, atol=1e-5)


def test_golden_values_of_torch() -> None:
    # The results of `torch_classifier` with torch 2.13, for machines without torch.
    data = noisy()
    fold = (np.arange(180), np.arange(180, 230))
    ((accuracy, layer),) = SentEvalClassifier().fit(data, [fold], [1e-2], classes=3)[0]
    assert accuracy == pytest.approx(0.54, abs=1e-9)
    np.testing.assert_allclose(layer[:, -1], [0.12867843, -0.03682123, -0.03882236], atol=1e-5)


def test_converged_it_is_scikit_learns_logistic_regression() -> None:
    data, factor = noisy(), 0.02
    rows = np.arange(len(data))
    # One evaluation after 10,000 full batches. SentEval's L2 includes the biases: so the peer
    # has them as weights of a constant feature, and C = 1 / (factor · rows).
    classifier = SentEvalClassifier(batch_size=len(data), epoch_size=10000, max_epoch=0)
    (((_, ours),),) = classifier.fit(data, [(rows, rows)], [factor], classes=3)
    peer = LogisticRegression(C=1 / (factor * len(data)), fit_intercept=False, tol=1e-8)
    peer.fit(np.column_stack([data.features, np.ones(len(data))]), data.labels)
    # Adam is slow in the part that all classes have in common; no prediction depends on it.
    np.testing.assert_allclose(ours - ours.mean(axis=0), peer.coef_, atol=1e-3)


def test_too_few_rows_to_hold_some_out() -> None:
    with pytest.raises(ValueError, match="20 training rows"):
        SentEvalClassifier().fit(noisy(), [(np.arange(19), None)], FACTORS, classes=3)


def test_soft_labels_by_hand() -> None:
    found = soft_labels(np.array([0.0, 0.25, 3.6, 5.0]))
    expected = [
        [1, 0, 0, 0, 0, 0],
        [0.75, 0.25, 0, 0, 0, 0],
        [0, 0, 0, 0.4, 0.6, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-15)


def toy(seed: int, count: int) -> LabelledFeatures:
    """Scores, and features that show how near each whole score is, for a linear layer to learn."""
    generator = np.random.default_rng(seed)
    scores = generator.uniform(0, 5, count)
    noise = generator.normal(size=(count, 8), scale=0.3)
    noise[:, :6] += 5 * soft_labels(scores)
    return LabelledFeatures(noise, scores)


def test_scores_are_learnt_down_to_zero() -> None:
    sets = {"train": toy(0, 400), "dev": toy(1, 40), "test": toy(2, 200)}
    scores, found = sets["test"].labels, predict_relatedness(**sets, seed=3)
    assert found.shape == (200,)
    assert ((found >= 0) & (found <= 5)).all()
    assert stats.pearsonr(found, scores).statistic > 0.98
    # With SentEval's classes 1 … 5 a prediction could not be below 1.
    assert found[scores < 0.5].mean() < 0.7
    assert np.array_equal(found, predict_relatedness(**sets, seed=3))
