"""Classifiers on frozen embeddings, and SentEval's three ways to validate them.

The protocol is that of facebookresearch/SentEval, senteval/tools/{classifier,validation}.py, with
its rounding: accuracies in percent with two decimals decide which regularisation is best, and the
first of equals wins. scikit-learn's classifier is that of SentEval's option without torch;
`senteval_classifier` is the original classifier, with torch's random numbers.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from use_st5._imports import require

# Rows that are read and scored at once: 16 MB with 4,096 features.
BLOCK = 1024
# The original uses this for the outer and inner folds of InnerKFoldClassifier, with every seed.
_INNER_KFOLD_SEED = 1111


class PairFeatures:
    """The features (u, v, |u − v|, u·v) of matching rows, to be indexed like a float32 array.

    The product is element by element. These are InferSent's features (Conneau et al. 2017, section
    3.1), which SentEval and its extension to GLUE use for pairs. MNLI's 393 thousand pairs would
    fill gigabytes: rows are computed when they are read, and only `u` and `v` are kept.

    Args:
        u: Embeddings `[pairs, dim]` of the first sentences.
        v: Embeddings `[pairs, dim]` of the second sentences.

    Attributes:
        shape: `(pairs, 4·dim)`.
    """

    def __init__(self, u: np.ndarray, v: np.ndarray) -> None:
        self._u, self._v = np.asarray(u, np.float32), np.asarray(v, np.float32)
        self.shape = (len(u), 4 * u.shape[1])

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        """The features `[rows, 4·dim]` of the pairs that a slice or an array of numbers selects."""
        u, v = self._u[rows], self._v[rows]
        return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


@dataclass(frozen=True, eq=False)
class LabelledFeatures:
    """The features and labels that a classifier is trained and tested on.

    Attributes:
        features: `[rows, dim]`, finite; SentEval's classifier never reads them as a whole.
        labels: The class of each row, `[rows]`: integers from 0.
    """

    features: np.ndarray | PairFeatures
    labels: np.ndarray

    def __post_init__(self) -> None:
        if isinstance(self.features, np.ndarray):
            object.__setattr__(self, "features", np.ascontiguousarray(self.features, np.float32))
        object.__setattr__(self, "labels", np.asarray(self.labels, np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """The features `[len(rows), dim]` of some rows, as float32; in `out` if it is given."""
        if out is None:
            out = np.empty((len(rows), self.features.shape[1]), np.float32)
        if isinstance(self.features, np.ndarray):
            # Any other mode copies through a buffer. All rows exist, so nothing is clipped.
            np.take(self.features, rows, axis=0, out=out, mode="clip")
        else:
            out[...] = self.features[rows]
        return out


@dataclass(frozen=True, eq=False)
class Fold:
    """The row numbers of a fold.

    Attributes:
        train: `[rows]`, to train on.
        dev: `[rows]`, to score on. If None, a classifier that stops early holds out some of
            `train`.
    """

    train: np.ndarray
    dev: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class TrainedClassifier:
    """A linear layer.

    Attributes:
        dev_accuracy: In 0 … 1; NaN if there was nothing to score.
        weights: `[classes, dim]`.
        biases: `[classes]`.
    """

    dev_accuracy: float
    weights: np.ndarray
    biases: np.ndarray

    def predict(self, data: LabelledFeatures, rows: np.ndarray | None = None) -> np.ndarray:
        """The most likely class of each row, `[rows]`; of all rows by default."""
        rows = np.arange(len(data)) if rows is None else rows
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        outputs = (data.read(block) @ self.weights.T + self.biases for block in blocks)
        return np.concatenate([each.argmax(axis=1) for each in outputs])


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limits BLAS to one thread while the block runs.

    The matrix products of these classifiers are so small that threads wait longer than they work:
    on a busy machine, several threads take forty times as long as one. threadpoolctl comes with
    scikit-learn.
    """
    return require("threadpoolctl", "evaluation").threadpool_limits(1, user_api="blas")


class Classifier(abc.ABC):
    """A kind of classifier with its settings; subclasses are frozen dataclasses.

    Attributes:
        name: Name of the protocol; results contain it.
        grids: The regularisations that each way of validation tries: "inner_kfold", "kfold" and
            "split".
        folds: Number of folds of cross-validation.
        seed: Seed of all random numbers.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    name: ClassVar[str]
    grids: ClassVar[dict[str, tuple[float, ...]]]
    folds: int
    seed: int

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """A description for people, with its source."""

    def options(self) -> dict[str, Any]:
        """The name and all settings, ready for JSON."""
        return {"classifier": self.name, **asdict(self)}

    def settings(self) -> dict[str, Any]:
        """The `options` that a task records: without the seed, which is that of the run."""
        return {name: value for name, value in self.options().items() if name != "seed"}

    @abc.abstractmethod
    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[float],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
    ) -> list[list[TrainedClassifier]]:
        """Trains on every fold with every regularisation.

        Args:
            data: The features and labels that the folds' training rows refer to.
            folds: Rows to train on and to score on.
            grid: The regularisations.
            classes: Number of classes.
            dev: The features and labels that the folds' dev rows refer to; `data` by default.

        Returns:
            Trained classifiers, `[folds][regularisations]`.
        """

    def inner_kfold(self, data: LabelledFeatures) -> Classification:
        """Nested cross-validation: an inner one on each training part chooses the regularisation.

        This is for data without a test set: MR, CR, SUBJ, MPQA.
        """
        grid, classes = self.grids["inner_kfold"], _classes(data)
        predictions = np.empty(len(data), np.int64)
        test_percents, chosen, dev_percents = [], [], []
        for fold in _folds(self.folds, data.labels, _INNER_KFOLD_SEED):
            inner = [
                Fold(fold.train[part.train], fold.train[part.dev])
                for part in _folds(self.folds, data.labels[fold.train], _INNER_KFOLD_SEED)
            ]
            best, percent = _best(self.fit(data, inner, grid, classes=classes))
            final = self.fit(data, [Fold(fold.train)], [grid[best]], classes=classes)[0][0]
            predictions[fold.dev] = final.predict(data, fold.dev)
            test_percents.append(_percent(predictions[fold.dev], data.labels[fold.dev]))
            chosen.append(grid[best])
            dev_percents.append(percent)
        return Classification(
            _fraction(round(float(np.mean(dev_percents)), 2)),
            _fraction(round(float(np.mean(test_percents)), 2)),
            predictions,
            tuple(chosen),
        )

    def kfold(self, *, train: LabelledFeatures, test: LabelledFeatures) -> Classification:
        """Cross-validation on the training set chooses the regularisation: TREC, MRPC."""
        grid, classes = self.grids["kfold"], _classes(train, test)
        folds = [*_folds(self.folds, train.labels, self.seed)]
        best, percent = _best(self.fit(train, folds, grid, classes=classes))
        everything = [Fold(np.arange(len(train)))]
        final = self.fit(train, everything, [grid[best]], classes=classes)[0][0]
        return _tested(final, test, percent, grid[best])

    def split(
        self, *, train: LabelledFeatures, dev: LabelledFeatures, test: LabelledFeatures
    ) -> Classification:
        """The dev set chooses the regularisation: SST, SICK-E, probing, SentGLUE.

        The original trains once more with the chosen regularisation. Each training sets all seeds
        again, so that gives the same classifier; here the first one is kept.
        """
        grid, classes = self.grids["split"], _classes(train, dev, test)
        fold = Fold(np.arange(len(train)), np.arange(len(dev)))
        trained = self.fit(train, [fold], grid, classes=classes, dev=dev)
        best, percent = _best(trained)
        return _tested(trained[0][best], test, percent, grid[best])


@dataclass(frozen=True)
class SklearnClassifier(Classifier):
    """Multinomial logistic regression, trained until it converges (L-BFGS).

    The grids of C are SentEval's. The original ran the solver that was scikit-learn's default
    before version 0.22 (liblinear: one against all, the intercept regularised too), so its
    figures differ in the second decimal.

    Attributes:
        folds: Number of folds of cross-validation.
        max_iterations: Largest number of iterations of L-BFGS.
        seed: Seed of the folds of `kfold`.
    """

    folds: int = 10
    max_iterations: int = 1000
    seed: int = 1111

    name: ClassVar[str] = "sklearn"
    grids: ClassVar[dict[str, tuple[float, ...]]] = {
        "inner_kfold": tuple(2.0**power for power in range(-2, 4)),
        "kfold": tuple(2.0**power for power in range(-1, 6)),
        "split": tuple(2.0**power for power in range(-2, 4)),
    }

    @property
    def title(self) -> str:
        """A description for people, with its source."""
        return "scikit-learn's logistic regression (sklearn), C from SentEval's grid"

    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[float],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
    ) -> list[list[TrainedClassifier]]:
        """See `Classifier.fit`; a fold's training rows are read as a whole."""
        with one_blas_thread():
            return [
                self._fit(data, fold, grid, classes, data if dev is None else dev) for fold in folds
            ]

    def _fit(
        self,
        data: LabelledFeatures,
        fold: Fold,
        values: Sequence[float],
        classes: int,
        dev: LabelledFeatures,
    ) -> list[TrainedClassifier]:
        features, labels = data.read(fold.train), data.labels[fold.train]
        linear_model = require("sklearn.linear_model", "evaluation")
        # Training with each C starts from the previous solution: the same optimum in half the time.
        model = linear_model.LogisticRegression(max_iter=self.max_iterations, warm_start=True)
        trained = []
        for value in values:
            model.set_params(C=value).fit(features, labels)
            classifier = TrainedClassifier(float("nan"), *_layer(model, classes))
            if fold.dev is not None:
                predicted = classifier.predict(dev, fold.dev)
                accuracy = float(np.mean(predicted == dev.labels[fold.dev]))
                classifier = replace(classifier, dev_accuracy=accuracy)
            trained.append(classifier)
        return trained


def _layer(model: Any, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights `[classes, dim]` and biases `[classes]`."""
    coefficients, intercepts = model.coef_, model.intercept_
    if len(coefficients) == 1:  # two classes: the score of the second against the first
        coefficients = np.concatenate([np.zeros_like(coefficients), coefficients])
        intercepts = np.concatenate([np.zeros_like(intercepts), intercepts])
    weights = np.zeros((classes, coefficients.shape[1]), np.float32)
    biases = np.full(classes, -np.inf, np.float32)  # a class never seen is never predicted
    weights[model.classes_], biases[model.classes_] = coefficients, intercepts
    return weights, biases


@dataclass(frozen=True, eq=False)
class Classification:
    """Accuracies as SentEval reports them, with what led to them.

    Attributes:
        dev_accuracy: Accuracy of the chosen regularisation, in 0 … 1; means over folds are rounded
            to four decimals, as the original rounds percents to two.
        test_accuracy: In 0 … 1, rounded in the same way.
        predictions: The predicted class of each test row, `[rows]`; after `inner_kfold`, the class
            predicted in the outer fold that tested the row.
        regularization: The chosen strengths, one per trained final classifier: SentEval's L2
            factor, or scikit-learn's C.
    """

    dev_accuracy: float
    test_accuracy: float
    predictions: np.ndarray
    regularization: tuple[float, ...]


def _tested(
    trained: TrainedClassifier, test: LabelledFeatures, dev_percent: float, regularization: float
) -> Classification:
    predictions = trained.predict(test)
    accuracy = _fraction(_percent(predictions, test.labels))
    return Classification(_fraction(dev_percent), accuracy, predictions, (regularization,))


def _folds(count: int, labels: np.ndarray, seed: int) -> Iterator[Fold]:
    if (rare := np.bincount(labels)[np.unique(labels)].min()) < count:
        raise ValueError(
            f"labels: expected at least {count} rows of each class, one for each fold; the rarest "
            f"has {rare}. Use fewer folds."
        )
    selection = require("sklearn.model_selection", "evaluation")
    splitter = selection.StratifiedKFold(n_splits=count, shuffle=True, random_state=seed)
    for train, dev in splitter.split(np.empty((len(labels), 0)), labels):
        yield Fold(train, dev)


def _best(trained: Sequence[Sequence[TrainedClassifier]]) -> tuple[int, float]:
    """The place of the best regularisation in the grid, and its mean accuracy in percent."""
    accuracies = np.array([[one.dev_accuracy for one in fold] for fold in trained])
    percents = [round(100 * float(mean), 2) for mean in accuracies.mean(axis=0)]
    best = int(np.argmax(percents))
    return best, percents[best]


def _percent(predictions: np.ndarray, labels: np.ndarray) -> float:
    return round(100 * float(np.mean(predictions == labels)), 2)


def _fraction(percent: float) -> float:
    return round(percent / 100, 4)


def _classes(*sets: LabelledFeatures) -> int:
    return 1 + max(int(data.labels.max()) for data in sets)
