from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from use_st5.evaluation.classifiers import LabelledFeatures, SentEvalClassifier
from use_st5.evaluation.classifiers.classifier import Fold, TrainedClassifier

GRID = [1e-5, 1e-2]


def noisy(rows: int = 230, dim: int = 6, classes: int = 3, *, seed: int = 0) -> LabelledFeatures:
    """Classes that a linear classifier finds mostly."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, dim)).astype(np.float32)
    scores = features @ random.normal(size=(dim, classes)) + 2 * random.normal(size=(rows, classes))
    return LabelledFeatures(features, scores.argmax(axis=1))


class Watched:
    """The features of an array, with a count of what was read."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape
        self.reads: list[int] = []

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        self.reads.append(len(rows))
        return self._array[rows]


def torch_classifier(
    settings: SentEvalClassifier, data: LabelledFeatures, fold: Fold, factor: float
) -> tuple[float, list[np.ndarray]]:
    """SentEval's training as written with torch: the dev accuracy and the parameters."""
    torch = pytest.importorskip("torch")
    np.random.seed(settings.seed)  # noqa: NPY002 -- the generator that SentEval uses
    torch.manual_seed(settings.seed)
    inputs, classes = data.features.shape[1], 1 + int(data.labels.max())
    sizes = [inputs, settings.hidden_dim, classes] if settings.hidden_dim else [inputs, classes]
    layers = [torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    more = [part for layer in layers[1:] for part in (torch.nn.Sigmoid(), layer)]
    model = torch.nn.Sequential(layers[0], *more)
    kind = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[settings.optimizer]
    optimizer = kind(model.parameters(), weight_decay=factor)
    x, y = torch.from_numpy(data.features), torch.from_numpy(data.labels)
    train, dev = fold.train, fold.dev
    if dev is None:
        order = np.random.permutation(len(train))  # noqa: NPY002
        count = int(0.05 * len(train))
        train, dev = train[order[count:]], train[order[:count]]
    best, misses, epochs, kept = -1.0, 0, 0, []
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
            kept = [parameter.detach().numpy().copy() for parameter in model.parameters()]
        else:
            misses += 1
    return best, kept


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimizer": "rmsprop", "batch_size": 32, "tenacity": 3, "epoch_size": 2, "seed": 5},
        {"hidden_dim": 7},
        {"tenacity": 50, "max_epoch": 12},
    ],
)
@pytest.mark.parametrize("held_out", [False, True])
def test_it_is_the_classifier_that_torch_trains(settings: dict[str, Any], held_out: bool) -> None:
    classifier, data = SentEvalClassifier(**settings), noisy()
    rows = np.random.default_rng(1).permutation(len(data))
    fold = Fold(rows) if held_out else Fold(rows[:180], rows[180:])
    (trained,) = classifier.fit(data, [fold], [GRID], classes=3)
    for ours, factor in zip(trained, GRID, strict=True):
        accuracy, parameters = torch_classifier(classifier, data, fold, factor)
        assert ours.dev_accuracy == pytest.approx(accuracy, abs=1e-9)
        ours_flat = [array for layer in ours.layers for array in layer]
        for array, expected in zip(ours_flat, parameters, strict=True):
            np.testing.assert_allclose(array, expected, atol=1e-5)


def test_golden_values_of_torch() -> None:
    # What `torch_classifier` gives with torch 2.13, for those who have no torch.
    data = noisy()
    fold = Fold(np.arange(180), np.arange(180, 230))
    (trained,) = SentEvalClassifier().fit(data, [fold], [[1e-2]], classes=3)[0]
    assert trained.dev_accuracy == pytest.approx(0.54, abs=1e-9)
    np.testing.assert_allclose(
        trained.layers[0][1], [0.12867843, -0.03682123, -0.03882236], atol=1e-5
    )


def equal(first: TrainedClassifier, second: TrainedClassifier) -> None:
    assert first.dev_accuracy == second.dev_accuracy
    for layer, other in zip(first.layers, second.layers, strict=True):
        for array, expected in zip(layer, other, strict=True):
            np.testing.assert_allclose(array, expected, atol=1e-5)


def test_folds_and_regularisations_do_not_know_of_each_other() -> None:
    data, classifier = noisy(), SentEvalClassifier(hidden_dim=3, dropout=0.2, tenacity=2)
    rows = np.random.default_rng(2).permutation(len(data))
    sizes = (200, 190, 200, 150, 200)  # those of 200 are trained side by side
    folds = [Fold(np.roll(rows, 31 * n)[:size], rows[-40:]) for n, size in enumerate(sizes)]
    folds.append(Fold(rows[:200]))
    grid = [GRID, GRID[::-1], [1e-3, 0.1], GRID, [0.1, 0.0]]
    together = classifier.fit(data, folds[:5], grid, classes=3)
    for trained, fold, factors in zip(together, folds, grid, strict=False):
        for one, factor in zip(trained, factors, strict=True):
            equal(one, classifier.fit(data, [fold], [[factor]], classes=3)[0][0])
    mixed = classifier.fit(data, [folds[5], folds[0]], [GRID, GRID], classes=3)
    equal(mixed[0][1], classifier.fit(data, [folds[5]], [GRID], classes=3)[0][1])


def test_features_are_read_in_blocks_as_often_as_the_epochs_say() -> None:
    data, dev = noisy(), noisy(rows=2500, seed=1)
    train, watched = Watched(data.features), Watched(dev.features)
    # Evaluations after 2, 4 and 6 passes: a new one starts while passes ≤ max_epoch.
    classifier = SentEvalClassifier(max_epoch=4, epoch_size=2, batch_size=50, tenacity=99)
    fold = Fold(np.arange(230), np.arange(2500))
    (computed,) = classifier.fit(
        LabelledFeatures(train, data.labels),
        [fold],
        [GRID],
        classes=3,
        dev=LabelledFeatures(watched, dev.labels),
    )
    assert train.reads == 6 * [50, 50, 50, 50, 30]
    assert sum(watched.reads) == 3 * 2500
    assert max(watched.reads) < 2500
    (array,) = classifier.fit(data, [fold], [GRID], classes=3, dev=dev)
    assert np.array_equal(computed[0].layers[0][0], array[0].layers[0][0])


def test_dropout_is_of_training_alone_and_seeded() -> None:
    data = noisy()
    fold = Fold(np.arange(180), np.arange(180, 230))
    classifier = SentEvalClassifier(hidden_dim=8, dropout=0.5, tenacity=50)
    ((first,),), ((again,),) = (classifier.fit(data, [fold], [[0.0]], classes=3) for _ in range(2))
    plain = dataclasses.replace(classifier, dropout=0.0)
    ((without,),) = plain.fit(data, [fold], [[0.0]], classes=3)
    equal(first, again)
    assert not np.allclose(first.layers[0][0], without.layers[0][0], atol=1e-3)
    assert np.mean(first.predict(data) == data.labels) > 0.5
    # The accuracy it stopped on is that of the network without dropout.
    assert np.mean(first.predict(data, fold.dev) == data.labels[fold.dev]) == first.dev_accuracy


def test_converged_it_is_scikit_learns_logistic_regression() -> None:
    data, factor = noisy(), 0.02
    rows = np.arange(len(data))
    # One evaluation after 10,000 full batches. SentEval's L2 is on biases too: for the peer they
    # are weights of a constant feature, and C = 1 / (factor · rows).
    classifier = SentEvalClassifier(batch_size=len(data), epoch_size=10000, max_epoch=0)
    ((trained,),) = classifier.fit(data, [Fold(rows, rows)], [[factor]], classes=3)
    peer = LogisticRegression(C=1 / (factor * len(data)), fit_intercept=False, tol=1e-8)
    peer.fit(np.column_stack([data.features, np.ones(len(data))]), data.labels)
    ((weights, biases),) = trained.layers
    # Adam is slow in what all classes have in common, which no prediction depends on.
    ours = np.column_stack([weights, biases])
    np.testing.assert_allclose(ours - ours.mean(axis=0), peer.coef_, atol=1e-3)


def test_strong_regularisation_shrinks_the_weights() -> None:
    data = noisy()
    classifier = SentEvalClassifier(tenacity=50)
    # Scored on what they learn from, so that the last state is among the best.
    fold = Fold(np.arange(180), np.arange(180))
    (trained,) = classifier.fit(data, [fold], [[0.0, 0.1, 1.0]], classes=3)
    sizes = [float(np.abs(one.layers[0][0]).sum()) for one in trained]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2 * sizes[2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "sgd"}, r"optimizer: expected one of \['adam', 'rmsprop'\], received 'sgd'"),
        ({"dropout": 1.0}, "dropout: expected"),
        ({"batch_size": 0}, "batch_size: expected at least 1, received 0"),
        ({"tenacity": -1}, "tenacity: expected at least 0"),
        ({"max_epoch": -1}, "max_epoch: expected at least 0"),
        ({"folds": 1}, "folds: expected at least 2"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SentEvalClassifier(**settings)


def test_too_few_rows_to_hold_some_out() -> None:
    with pytest.raises(ValueError, match="at least 20 training rows.*received 19"):
        SentEvalClassifier().fit(noisy(), [Fold(np.arange(19))], [GRID], classes=3)
