"""The classifier of SentEval's option without torch: scikit-learn's logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from use_st5._imports import require
from use_st5.evaluation.classifiers.classifier import (
    Classifier,
    Fold,
    LabelledFeatures,
    TrainedClassifier,
    one_blas_thread,
)
from use_st5.evaluation.task import Progress


@dataclass(frozen=True)
class SklearnClassifier(Classifier):
    """Multinomial logistic regression, trained until it converges (L-BFGS).

    The grids of C are SentEval's. The original ran the solver that was scikit-learn's default
    before version 0.22 (liblinear: one against all, the intercept regularised too), so its
    figures differ in the second decimal.

    Attributes:
        folds: Of cross-validation.
        max_iterations: Of L-BFGS.
        seed: Of the folds of `kfold`.
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
        """What it is, for people, with its source."""
        return "scikit-learn's logistic regression (sklearn), C from SentEval's grid"

    def options(self) -> dict[str, Any]:
        """The name and all settings, as JSON takes them."""
        return {"classifier": self.name, **asdict(self)}

    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[Sequence[float]],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
        progress: Progress | None = None,
    ) -> list[list[TrainedClassifier]]:
        """See `Classifier.fit`; a fold's training rows are read as a whole."""
        dev = data if dev is None else dev
        steps = (progress or Progress()).track([*zip(folds, grid, strict=True)], "folds")
        with one_blas_thread():
            return [self._fit(data, fold, values, classes, dev) for fold, values in steps]

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
        # Each C starts where the one before it ended: the same optimum in half the time.
        model = linear_model.LogisticRegression(max_iter=self.max_iterations, warm_start=True)
        trained = []
        for value in values:
            model.set_params(C=value).fit(features, labels)
            layers = (_layer(model, classes),)
            accuracy = float("nan")
            if fold.dev is not None:
                predicted = TrainedClassifier(accuracy, layers).predict(dev, fold.dev)
                accuracy = float(np.mean(predicted == dev.labels[fold.dev]))
            trained.append(TrainedClassifier(accuracy, layers))
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
