"""What is trained and tested on, and what validation needs of a classifier."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from use_st5._imports import require
from use_st5.evaluation.task import Progress

# Rows that are read and scored at once: 16 MB of 4,096 features.
BLOCK = 1024


class Features(Protocol):
    """Rows of numbers that are read in blocks: an array, or something that computes them.

    Attributes:
        shape: `(rows, dim)`.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """`(rows, dim)`."""

    def __getitem__(self, rows: np.ndarray | slice, /) -> Any:
        """The features `[rows, dim]` that a slice or an array of numbers selects."""


@dataclass(frozen=True, eq=False)
class LabelledFeatures:
    """What a classifier is trained and tested on.

    Attributes:
        features: `[rows, dim]`: an array, or anything that has its `shape` and gives the rows it
            is indexed with; it is never read as a whole by SentEval's classifier.
        labels: The class of each row, `[rows]`: integers from 0.

    Raises:
        ValueError: The shapes do not fit, there are no rows, labels are no such integers, or an
            array has NaN or infinities.
    """

    features: Features
    labels: np.ndarray

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        shape = tuple(self.features.shape)
        if len(shape) != 2 or labels.shape != shape[:1] or not len(labels):
            raise ValueError(
                "expected features [rows, dim] and a label for each row, received the shapes "
                f"{shape} and {labels.shape}."
            )
        if labels.dtype.kind not in "iub" or labels.min() < 0:
            raise ValueError(f"labels: expected integers from 0, received {np.unique(labels)[:5]}.")
        features = self.features
        if isinstance(features, np.ndarray):
            if not np.isfinite(features).all():
                raise ValueError("features: expected finite numbers, received NaN or infinity.")
            features = np.ascontiguousarray(features, np.float32)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "labels", labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """The features `[len(rows), dim]` of some rows, as float32; in `out` where it is given."""
        if out is None:
            out = np.empty((len(rows), self.features.shape[1]), np.float32)
        if isinstance(self.features, np.ndarray):
            # Any other mode copies through a buffer; the rows exist.
            np.take(self.features, rows, axis=0, out=out, mode="clip")
        else:
            out[...] = self.features[rows]
        return out


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows by their numbers.

    Attributes:
        train: `[rows]`, to train on.
        dev: `[rows]`, to score on. None: a classifier that stops early holds out some of `train`.
    """

    train: np.ndarray
    dev: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class TrainedClassifier:
    """Linear, or linear on sigmoid on linear.

    Attributes:
        dev_accuracy: In 0 … 1; NaN where there was nothing to score.
        layers: Weights `[out, in]` and biases `[out]` of one or two layers.
    """

    dev_accuracy: float
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]

    def predict(self, data: LabelledFeatures, rows: np.ndarray | None = None) -> np.ndarray:
        """The most likely class of each row, `[rows]`; of all rows by default."""
        rows = np.arange(len(data)) if rows is None else rows
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        return np.concatenate([self._predict(data.read(block)) for block in blocks])

    def _predict(self, features: np.ndarray) -> np.ndarray:
        (weights, biases), *more = self.layers
        outputs = features @ weights.T + biases
        for weights, biases in more:
            outputs = sigmoid(outputs) @ weights.T + biases
        return outputs.argmax(axis=1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x), without overflow."""
    return 0.5 * np.tanh(0.5 * x) + 0.5


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keeps BLAS to one thread while the block runs.

    Products as small as those of these classifiers are done before threads have met: on a machine
    with other work they take forty times as long as in one thread. threadpoolctl is scikit-learn's.
    """
    return require("threadpoolctl", "evaluation").threadpool_limits(1, user_api="blas")


class Classifier(abc.ABC):
    """A kind of classifier with its settings; subclasses are frozen dataclasses.

    Attributes:
        name: Of the protocol; results carry it.
        grids: The regularisations that are tried by each way of validation: "inner_kfold",
            "kfold" and "split".
        folds: Number of folds of cross-validation.
        seed: Of everything random.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
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

    def settings(self) -> dict[str, Any]:
        """`options` without the seed, which is that of the run: what a task records of it."""
        return {name: value for name, value in self.options().items() if name != "seed"}

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
