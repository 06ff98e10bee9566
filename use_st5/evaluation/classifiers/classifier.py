"""What validation needs of a classifier."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

from use_st5.evaluation.classifiers.fold import Fold
from use_st5.evaluation.classifiers.labelled_features import LabelledFeatures
from use_st5.evaluation.classifiers.trained_classifier import TrainedClassifier
from use_st5.evaluation.task import Progress


class Classifier(abc.ABC):
    """A kind of classifier with its settings; subclasses are frozen dataclasses.

    Attributes:
        name: Of the protocol; results carry it.
        grids: The regularisations that are tried by each way of validation: "inner_kfold",
            "kfold" and "split".
        folds: Number of folds of cross-validation.
        seed: Of everything random.
    """

    name: ClassVar[str]
    grids: ClassVar[dict[str, tuple[float, ...]]]
    folds: int
    seed: int

    @property
    @abc.abstractmethod
    def title(self) -> str:
        """What it is, for people, with its source."""

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """The name and all settings, as JSON takes them."""

    @abc.abstractmethod
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
        """Trains on every fold with every regularisation.

        Args:
            data: What the folds' training rows are of.
            folds: Rows to train on and to score on.
            grid: Regularisations of each fold, `[folds][regularisations]`.
            classes: Number of classes.
            dev: What the folds' dev rows are of; `data` by default.
            progress: Shows how far a training is.

        Returns:
            Trained classifiers, `[folds][regularisations]`.
        """
