"""SentEval's three ways to choose the regularisation and to test.

Source: senteval/tools/validation.py of facebookresearch/SentEval, with its rounding: percents with
two decimals decide which regularisation is best, the first of equals wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from use_st5._imports import require
from use_st5.evaluation.classifiers.classifier import (
    Classifier,
    Fold,
    LabelledFeatures,
    TrainedClassifier,
)
from use_st5.evaluation.task import Progress

# The original passes this to the outer and inner folds of InnerKFoldClassifier, whatever the seed.
_INNER_KFOLD_SEED = 1111


@dataclass(frozen=True, eq=False)
class Classification:
    """Accuracies as SentEval reports them, with what led to them.

    Attributes:
        protocol: The classifier's name: "senteval" or "sklearn".
        dev_accuracy: Of the chosen regularisation, in 0 … 1; means over folds are rounded to four
            decimals, as the original rounds percents to two.
        test_accuracy: In 0 … 1, rounded likewise.
        predictions: The predicted class of each test row, `[rows]`; after `inner_kfold` each row's
            is that of the outer fold it was tested in.
        regularization: The chosen strengths, one per trained final classifier: SentEval's L2
            factor, or scikit-learn's C.
    """

    protocol: str
    dev_accuracy: float
    test_accuracy: float
    predictions: np.ndarray
    regularization: tuple[float, ...]


def inner_kfold(
    classifier: Classifier, data: LabelledFeatures, *, progress: Progress | None = None
) -> Classification:
    """Cross-validation; inside each training part another one chooses the regularisation.

    For data without a test set: MR, CR, SUBJ, MPQA.

    Args:
        classifier: What is trained.
        data: All rows.
        progress: Shows the outer folds.

    Raises:
        ValueError: A class has fewer rows than there are folds.
    """
    grid = classifier.grids["inner_kfold"]
    classes = _classes(data)
    predictions = np.empty(len(data), np.int64)
    tested, chosen, dev = [], [], []
    outer = [*_folds(classifier.folds, data.labels, _INNER_KFOLD_SEED)]
    for fold in (progress or Progress()).track(outer, "outer folds", len(outer)):
        inner = [
            Fold(fold.train[part.train], fold.train[part.dev])
            for part in _folds(classifier.folds, data.labels[fold.train], _INNER_KFOLD_SEED)
        ]
        trained = classifier.fit(data, inner, [grid] * len(inner), classes=classes)
        best, percent = _best(trained)
        final = classifier.fit(data, [Fold(fold.train)], [[grid[best]]], classes=classes)[0][0]
        predictions[fold.dev] = final.predict(data, fold.dev)
        tested.append(_percent(predictions[fold.dev], data.labels[fold.dev]))
        chosen.append(grid[best])
        dev.append(percent)
    return Classification(
        classifier.name,
        _fraction(round(float(np.mean(dev)), 2)),
        _fraction(round(float(np.mean(tested)), 2)),
        predictions,
        tuple(chosen),
    )


def kfold(
    classifier: Classifier,
    *,
    train: LabelledFeatures,
    test: LabelledFeatures,
    progress: Progress | None = None,
) -> Classification:
    """Cross-validation on the training set chooses the regularisation: TREC, MRPC.

    Raises:
        ValueError: A class has fewer rows than there are folds, or the sets' dimensions differ.
    """
    classes = _classes(train, test)
    grid = classifier.grids["kfold"]
    folds = [*_folds(classifier.folds, train.labels, classifier.seed)]
    trained = classifier.fit(train, folds, [grid] * len(folds), classes=classes, progress=progress)
    best, percent = _best(trained)
    final = classifier.fit(train, [Fold(np.arange(len(train)))], [[grid[best]]], classes=classes)
    return _tested(classifier, final[0][0], test, percent, grid[best])


def split(
    classifier: Classifier,
    *,
    train: LabelledFeatures,
    dev: LabelledFeatures,
    test: LabelledFeatures,
    progress: Progress | None = None,
) -> Classification:
    """The dev set chooses the regularisation: SST, SICK-E, probing, SentGLUE.

    The original trains once more with the one it chose. As everything random is seeded anew for
    each training, that gives the same classifier; here the first one is kept.

    Raises:
        ValueError: The sets' dimensions differ.
    """
    classes = _classes(train, dev, test)
    grid = classifier.grids["split"]
    fold = Fold(np.arange(len(train)), np.arange(len(dev)))
    trained = classifier.fit(train, [fold], [grid], classes=classes, dev=dev, progress=progress)
    best, percent = _best(trained)
    return _tested(classifier, trained[0][best], test, percent, grid[best])


def _tested(
    classifier: Classifier,
    trained: TrainedClassifier,
    test: LabelledFeatures,
    dev_percent: float,
    regularization: float,
) -> Classification:
    predictions = trained.predict(test)
    percent = _percent(predictions, test.labels)
    return Classification(
        classifier.name,
        _fraction(dev_percent),
        _fraction(percent),
        predictions,
        (regularization,),
    )


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
    dims = {data.features.shape[1] for data in sets}
    if len(dims) > 1:
        raise ValueError(f"features: expected one dimension in all sets, received {sorted(dims)}.")
    return 1 + max(int(data.labels.max()) for data in sets)
