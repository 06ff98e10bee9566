from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from use_st5.evaluation.classifiers import Fold, LabelledFeatures
from use_st5.evaluation.senteval_classifier import (
    OPTIMIZERS,
    Adam,
    RMSprop,
    SentEvalClassifier,
    _cross_entropy_gradient,
    torch_linear,
)


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
    weights, biases = torch_linear(random, 3, 2)
    assert weights.dtype == biases.dtype == np.float32
    assert weights.tolist() == [
        [-0.04549999535083771, -0.47922441363334656, 0.34750422835350037],
        [-0.11873110383749008, 0.5251538157463074, 0.11337392777204514],
    ]
    assert biases.tolist() == [-0.02067270688712597, 0.5133672952651978]
    weights, biases = torch_linear(random, 2, 2)
    assert weights.tolist() == [
        [0.020534450188279152, 0.4420081675052643],
        [-0.2655201554298401, 0.6726028323173523],
    ]
    assert biases.tolist() == [0.5298776030540466, 0.30914121866226196]


@pytest.mark.parametrize("seed", [0, 1111, 2**32 - 1])
@pytest.mark.parametrize(("inputs", "outputs"), [(512, 2), (1, 1), (7, 50), (1024, 3)])
def test_every_bit_is_torchs(seed: int, inputs: int, outputs: int) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    random = np.random.RandomState(seed)
    for size in ((inputs, outputs), (outputs, 6)):
        expected = torch.nn.Linear(*size)
        weights, biases = torch_linear(random, *size)
        assert np.array_equal(weights, expected.weight.detach().numpy())
        assert np.array_equal(biases, expected.bias.detach().numpy())


def row(*numbers: float) -> np.ndarray:
    return np.array([numbers], np.float32)


def test_adam_by_hand() -> None:
    # The gradient with decay is 3 + 0.5·2 = 4. Step 1: both moments corrected are 4 and 16.
    adam = Adam(row(2.0), row(0.5))
    adam.step(row(3.0))
    assert adam.parameters[0, 0] == pytest.approx(2 - 1e-3 * 4 / (4 + 1e-8), abs=1e-7)
    # Step 2, gradient −1 + 0.5·1.999 = −0.0005: m = 0.9·0.4 + 0.1·g, v = 0.999·0.016 + 0.001·g².
    g = -1 + 0.5 * 1.999
    m = (0.9 * 0.4 + 0.1 * g) / (1 - 0.9**2)
    v = (0.999 * 0.016 + 0.001 * g * g) / (1 - 0.999**2)
    adam.step(row(-1.0))
    assert adam.parameters[0, 0] == pytest.approx(1.999 - 1e-3 * m / (v**0.5 + 1e-8), abs=1e-7)


def test_rmsprop_by_hand() -> None:
    # v = 0.01·16; the step is 0.01·4/0.4.
    rmsprop = RMSprop(row(2.0), row(0.5))
    rmsprop.step(row(3.0))
    assert rmsprop.parameters[0, 0] == pytest.approx(1.9, abs=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fifty_steps_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(1)
    start = random.normal(size=(2, 5)).astype(np.float32)
    parameters = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimizer = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[name]
    peer = optimizer([parameters], weight_decay=0.01)
    ours = OPTIMIZERS[name](start.copy(), np.full_like(start, 0.01))
    for _ in range(50):
        gradient = random.normal(size=(2, 5)).astype(np.float32)
        parameters.grad = torch.from_numpy(gradient.copy())
        peer.step()
        ours.step(gradient)
    np.testing.assert_allclose(ours.parameters, parameters.detach().numpy(), rtol=1e-5, atol=1e-6)


GRID = [1e-5, 1e-2]


def noisy(rows: int = 230, dim: int = 6, classes: int = 3, *, seed: int = 0) -> LabelledFeatures:
    """Noisy classes, most of which a linear classifier can predict."""
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
    model = torch.nn.Linear(inputs, classes)
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
        {"tenacity": 50, "max_epoch": 12},
    ],
)
@pytest.mark.parametrize("held_out", [False, True])
def test_it_is_the_classifier_that_torch_trains(settings: dict[str, Any], held_out: bool) -> None:
    classifier, data = SentEvalClassifier(**settings), noisy()
    rows = np.random.default_rng(1).permutation(len(data))
    fold = Fold(rows) if held_out else Fold(rows[:180], rows[180:])
    (trained,) = classifier.fit(data, [fold], GRID, classes=3)
    for ours, factor in zip(trained, GRID, strict=True):
        accuracy, parameters = torch_classifier(classifier, data, fold, factor)
        assert ours.dev_accuracy == pytest.approx(accuracy, abs=1e-9)
        for array, expected in zip((ours.weights, ours.biases), parameters, strict=True):
            np.testing.assert_allclose(array, expected, atol=1e-5)


def test_golden_values_of_torch() -> None:
    # The results of `torch_classifier` with torch 2.13, for machines without torch.
    data = noisy()
    fold = Fold(np.arange(180), np.arange(180, 230))
    (trained,) = SentEvalClassifier().fit(data, [fold], [1e-2], classes=3)[0]
    assert trained.dev_accuracy == pytest.approx(0.54, abs=1e-9)
    np.testing.assert_allclose(trained.biases, [0.12867843, -0.03682123, -0.03882236], atol=1e-5)


def test_features_are_read_in_blocks_as_often_as_the_epochs_say() -> None:
    data, dev = noisy(), noisy(rows=2500, seed=1)
    train, watched = Watched(data.features), Watched(dev.features)
    # Evaluations after 2, 4 and 6 passes: a new one starts while passes ≤ max_epoch.
    classifier = SentEvalClassifier(max_epoch=4, epoch_size=2, batch_size=50, tenacity=99)
    fold = Fold(np.arange(230), np.arange(2500))
    (computed,) = classifier.fit(
        LabelledFeatures(train, data.labels),
        [fold],
        GRID,
        classes=3,
        dev=LabelledFeatures(watched, dev.labels),
    )
    assert train.reads == 6 * [50, 50, 50, 50, 30]
    assert sum(watched.reads) == 3 * 2500
    assert max(watched.reads) < 2500
    (array,) = classifier.fit(data, [fold], GRID, classes=3, dev=dev)
    assert np.array_equal(computed[0].weights, array[0].weights)


def test_the_dev_accuracy_is_that_of_the_weights_that_are_kept() -> None:
    data = noisy()
    fold = Fold(np.arange(180), np.arange(180, 230))
    (trained,) = SentEvalClassifier(tenacity=50).fit(data, [fold], GRID, classes=3)
    for one in trained:
        found = one.predict(data, fold.dev)
        assert np.mean(found == data.labels[fold.dev]) == one.dev_accuracy > 0.5


def test_converged_it_is_scikit_learns_logistic_regression() -> None:
    data, factor = noisy(), 0.02
    rows = np.arange(len(data))
    # One evaluation after 10,000 full batches. SentEval's L2 includes the biases: so the peer
    # has them as weights of a constant feature, and C = 1 / (factor · rows).
    classifier = SentEvalClassifier(batch_size=len(data), epoch_size=10000, max_epoch=0)
    ((trained,),) = classifier.fit(data, [Fold(rows, rows)], [factor], classes=3)
    peer = LogisticRegression(C=1 / (factor * len(data)), fit_intercept=False, tol=1e-8)
    peer.fit(np.column_stack([data.features, np.ones(len(data))]), data.labels)
    # Adam is slow in the part that all classes have in common; no prediction depends on it.
    ours = np.column_stack([trained.weights, trained.biases])
    np.testing.assert_allclose(ours - ours.mean(axis=0), peer.coef_, atol=1e-3)


def test_strong_regularisation_shrinks_the_weights() -> None:
    data = noisy()
    classifier = SentEvalClassifier(tenacity=50)
    # The dev rows are the training rows, so that the last state is among the best.
    fold = Fold(np.arange(180), np.arange(180))
    (trained,) = classifier.fit(data, [fold], [0.0, 0.1, 1.0], classes=3)
    sizes = [float(np.abs(one.weights).sum()) for one in trained]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2 * sizes[2]


def test_too_few_rows_to_hold_some_out() -> None:
    with pytest.raises(ValueError, match="20 training rows"):
        SentEvalClassifier().fit(noisy(), [Fold(np.arange(19))], GRID, classes=3)
