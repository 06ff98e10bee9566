"""Trainings of SentEval's classifier that take their steps together, and when each stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from use_st5.evaluation.classifiers._networks import OPTIMIZERS, Networks, torch_linear
from use_st5.evaluation.classifiers.classifier import (
    BLOCK,
    Fold,
    LabelledFeatures,
    TrainedClassifier,
)
from use_st5.evaluation.task import Progress

if TYPE_CHECKING:
    from use_st5.evaluation.classifiers.senteval_classifier import SentEvalClassifier

_HELD_OUT = 0.05


class EarlyStopping:
    """Follows the dev accuracies of several trainings.

    The counter of evaluations that were no better than the best is never reset: a training stops at
    the (tenacity + 1)-th of them, wherever they lie (senteval/tools/classifier.py, `fit`).

    Args:
        shape: Of the trainings.
        tenacity: How many such evaluations are let pass.

    Attributes:
        best: Best accuracies so far.
        running: Which trainings go on.
    """

    def __init__(self, shape: tuple[int, ...], tenacity: int) -> None:
        self.best = np.full(shape, -1.0)
        self.running = np.ones(shape, bool)
        self._misses = np.zeros(shape, np.int64)
        self._tenacity = tenacity

    def update(self, accuracies: np.ndarray) -> np.ndarray:
        """Takes one evaluation of each training; which of the running ones improved."""
        better = self.running & (accuracies > self.best)
        self.best[better] = accuracies[better]
        self._misses += self.running & ~better
        self.running &= self._misses <= self._tenacity
        return better


class SideBySide:
    """The trainings of some folds with several regularisations each.

    Args:
        settings: Of each training.
        data: What the training rows are of.
        dev: What the dev rows are of.
        folds: Equal numbers of training rows; all with dev rows, or none.
        grid: `[folds][regularisations]`.
        classes: Number of classes.
    """

    def __init__(
        self,
        settings: SentEvalClassifier,
        data: LabelledFeatures,
        dev: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[Sequence[float]],
        classes: int,
    ) -> None:
        self._settings, self._data, self._dev = settings, data, dev
        factors = np.array(grid, np.float32)  # [folds, regularisations]
        self._networks = Networks(
            factors.shape[1], data.features.shape[1], settings.hidden_dim, classes, settings.dropout
        )
        self._classes = np.arange(classes)[:, None]
        self._randoms = [np.random.RandomState(settings.seed) for _ in folds]
        self._rows = [
            _held_out(fold, random) for fold, random in zip(folds, self._randoms, strict=True)
        ]
        # Torch has a generator of its own with the same seed.
        draws = np.random.RandomState(settings.seed)
        layers = [torch_linear(draws, *size) for size in self._networks.sizes()]
        rows = np.repeat(self._networks.pack(layers)[None], len(folds), axis=0)
        decay = np.empty_like(rows)
        for array in sum(self._networks.unpack(decay), ()):
            array[...] = factors.reshape(*factors.shape, *[1] * (array.ndim - 2))
        self._optimizer = OPTIMIZERS[settings.optimizer](rows, decay)
        self._gradient = np.empty_like(rows)
        self._batch = np.empty(
            (len(folds) * settings.batch_size, data.features.shape[1]), np.float32
        )
        self._dropout = np.random.default_rng(settings.seed)
        self._best = rows.copy()
        self._stopping = EarlyStopping(factors.shape, settings.tenacity)
        self._groups = np.arange(len(folds))  # those that are still trained

    def run(self, progress: Progress) -> list[list[TrainedClassifier]]:
        """Trains until all have stopped: `[folds][regularisations]`."""
        settings = self._settings
        evaluations = settings.max_epoch // settings.epoch_size + 1
        for _ in progress.track(range(evaluations), "evaluations", evaluations):
            for _ in range(settings.epoch_size):
                self._epoch()
            self._evaluate()
            if not len(self._groups):
                break
        groups, count = self._stopping.best.shape
        return [[self._trained(group, place) for place in range(count)] for group in range(groups)]

    def _trained(self, group: int, place: int) -> TrainedClassifier:
        layers = self._networks.unpack(self._best)
        return TrainedClassifier(
            float(self._stopping.best[group, place]),
            tuple((weights[group, place], biases[group, place]) for weights, biases in layers),
        )

    def _epoch(self) -> None:
        """One pass over the training rows of every group, each in its own order."""
        rows = np.stack([self._shuffled(group) for group in self._groups.tolist()])
        for start in range(0, rows.shape[1], self._settings.batch_size):
            self._step(rows[:, start : start + self._settings.batch_size])

    def _shuffled(self, group: int) -> np.ndarray:
        rows, _ = self._rows[group]
        return rows[self._randoms[group].permutation(len(rows))]

    def _step(self, rows: np.ndarray) -> None:
        # Fresh memory for each step would cost more than the step.
        features = self._batch[: rows.size]
        self._data.read(rows.ravel(), out=features)
        features = features.reshape(*rows.shape, -1)
        targets = (self._data.labels[rows][:, None] == self._classes)[:, None]
        self._networks.gradient(
            self._optimizer.parameters, features, targets, self._gradient, self._mask(rows.shape[1])
        )
        self._optimizer.step(self._gradient)

    def _mask(self, batch: int) -> np.ndarray | None:
        """Factors `[1, 1, hidden, batch]`: all groups share them, as all are seeded alike."""
        rate = self._networks.dropout
        if not rate or not self._networks.hidden:
            return None
        kept = self._dropout.random((1, 1, self._networks.hidden, batch), np.float32) >= rate
        return kept * np.float32(1 / (1 - rate))

    def _evaluate(self) -> None:
        """Scores the dev rows, keeps what improved and drops the groups that are done."""
        accuracies = np.zeros_like(self._stopping.best)
        for place, group in enumerate(self._groups):
            _, dev = self._rows[group]
            accuracies[group] = self._accuracies(place, dev)
        better = self._stopping.update(accuracies)
        parameters = self._networks.unpack(self._optimizer.parameters)
        best = self._networks.unpack(self._best)
        for place, group in enumerate(self._groups):
            for current, kept in zip(sum(parameters, ()), sum(best, ()), strict=True):
                kept[group, better[group]] = current[place, better[group]]
        going = np.any(self._stopping.running[self._groups], axis=1)
        if not going.all():
            self._groups = self._groups[going]
            self._optimizer.keep(going)
            self._gradient = self._gradient[going]

    def _accuracies(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Accuracies `[regularisations]` of a group on dev rows."""
        parameters = self._optimizer.parameters[place : place + 1]
        correct = np.zeros(self._networks.count, np.int64)
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            logits = self._networks.logits(parameters, self._dev.read(block)[None])[0]
            correct += (logits.argmax(axis=1) == self._dev.labels[block]).sum(axis=1)
        return correct / len(rows)


def _held_out(fold: Fold, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Training and dev rows of a fold; of one without dev rows, 5 % of the others."""
    if fold.dev is not None:
        return fold.train, fold.dev
    order = fold.train[random.permutation(len(fold.train))]
    held_out = int(_HELD_OUT * len(order))
    if not held_out:
        raise ValueError(
            f"expected at least {round(1 / _HELD_OUT)} training rows, of which 5 % are held out to "
            f"stop early; received {len(order)}."
        )
    return order[held_out:], order[:held_out]
