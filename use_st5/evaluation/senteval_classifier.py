"""SentEval's own classifier without torch: logistic regression.

Initial weights, held-out rows and the order of the batches are those that the original draws with
torch (senteval/tools/classifier.py). Torch's generator on the CPU is the Mersenne Twister, seeded
as NumPy's `RandomState` is; a float32 uniform number is made of the 24 low bits of a 32-bit draw
(ATen/core/TransformationHelper.h).

A cross-validation trains hundreds of tiny networks. They are trained together: a group of networks
shares its batches (one fold with several regularisations), and groups of one size take their steps
at the same time. All parameters of a group lie in one row, `[groups, parameters]`, so that an
optimizer updates all with a few array operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from use_st5.evaluation.classifiers import (
    BLOCK,
    Classifier,
    Fold,
    LabelledFeatures,
    TrainedClassifier,
    one_blas_thread,
)

_GRID = (1e-5, 1e-4, 1e-3, 1e-2)
_HELD_OUT = 0.05
# Groups of networks that are trained at once: their parameters should stay in the cache.
_GROUPS = 10


@dataclass(frozen=True)
class Networks:
    """The shape of the linear networks of one group.

    Attributes:
        count: Networks in a group.
        inputs: Dimension of the features.
        classes: Outputs.
    """

    count: int
    inputs: int
    classes: int

    def pack(self, *layer: np.ndarray) -> np.ndarray:
        """The row `[parameters]` of a group whose networks all have these weights and biases."""
        return np.concatenate(
            [np.broadcast_to(array, (self.count, *array.shape)).ravel() for array in layer]
        )

    def unpack(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Views: weights `[groups, count, classes, inputs]`, biases `[groups, count, classes]`."""
        middle = self.count * self.classes * self.inputs
        weights = rows[:, :middle].reshape(-1, self.count, self.classes, self.inputs)
        return weights, rows[:, middle:].reshape(-1, self.count, self.classes)

    def logits(self, rows: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Logits `[groups, count, classes, batch]` of features `[groups, batch, inputs]`."""
        groups, batch, inputs = features.shape
        weights, biases = self.unpack(rows)
        flat = weights.reshape(groups, -1, inputs) @ features.swapaxes(1, 2)
        outputs = flat.reshape(groups, self.count, -1, batch)
        outputs += biases[..., None]
        return outputs

    def gradient(
        self, rows: np.ndarray, features: np.ndarray, targets: np.ndarray, out: np.ndarray
    ) -> None:
        """The gradient of the mean cross-entropy of each network.

        Args:
            rows: `[groups, parameters]`.
            features: `[groups, batch, inputs]`.
            targets: One-hot `[groups, 1, classes, batch]`.
            out: Gets the gradient, `[groups, parameters]`.
        """
        errors = self.logits(rows, features)
        errors -= errors.max(axis=2, keepdims=True)
        np.exp(errors, out=errors)
        errors /= errors.sum(axis=2, keepdims=True)
        errors -= targets
        errors *= np.float32(1 / features.shape[1])
        groups, batch, _ = features.shape
        weights, biases = self.unpack(out)
        flat = weights.reshape(groups, -1, self.inputs)
        np.matmul(errors.reshape(groups, -1, batch), features, out=flat)
        errors.sum(axis=3, out=biases)


def torch_linear(
    random: np.random.RandomState, inputs: int, outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights `[outputs, inputs]` and biases `[outputs]` as `torch.nn.Linear` initialises them.

    They are equal to the last bit after `torch.manual_seed(seed)` if `random` is
    `RandomState(seed)` and neither generator was used before (`kaiming_uniform_` with a = √5;
    torch/nn/modules/linear.py).
    """
    gain = math.sqrt(2 / (1 + math.sqrt(5) ** 2))
    weights = _uniform(random, outputs * inputs, math.sqrt(3) * (gain / math.sqrt(inputs)))
    return weights.reshape(outputs, inputs), _uniform(random, outputs, 1 / math.sqrt(inputs))


def _uniform(random: np.random.RandomState, count: int, bound: float) -> np.ndarray:
    """Float32 numbers of [-bound, bound)."""
    bits = random.randint(0, 2**32, size=count, dtype=np.uint32) & np.uint32(2**24 - 1)
    limit = np.float64(np.float32(bound))
    # Torch multiplies and adds with one rounding; so does float64 here.
    return (bits * 2.0**-24 * (2 * limit) - limit).astype(np.float32)


class Adam:
    """Adam (arXiv 1412.6980, algorithm 1): learning rate 1e-3, β 0.9 and 0.999, ε 1e-8.

    It updates float32 `parameters` in place. `decay`, of the same shape, has the L2 factor of each
    parameter: `decay * parameter` is added to its gradient first (torch's `weight_decay`).
    """

    def __init__(self, parameters: np.ndarray, decay: np.ndarray) -> None:
        self.parameters, self._decay = parameters, decay
        self._first, self._second = np.zeros_like(parameters), np.zeros_like(parameters)
        self._buffer = np.empty_like(parameters)
        self._steps = 0

    def keep(self, rows: np.ndarray) -> None:
        """Keeps only some rows (the first axis) of the parameters and the optimizer's state."""
        for name in ("parameters", "_decay", "_first", "_second", "_buffer"):
            setattr(self, name, getattr(self, name)[rows])

    def _average(self, gradient: np.ndarray, share: float) -> None:
        """Adds the decay to the gradient, and its squares to the second moment."""
        np.multiply(self.parameters, self._decay, out=self._buffer)
        gradient += self._buffer
        np.multiply(gradient, gradient, out=self._buffer)
        self._buffer *= np.float32(1 - share)
        self._second *= np.float32(share)
        self._second += self._buffer

    def step(self, gradient: np.ndarray) -> None:
        """Updates the parameters; the gradient is overwritten."""
        self._steps += 1
        self._average(gradient, 0.999)
        gradient *= np.float32(1 - 0.9)
        self._first *= np.float32(0.9)
        self._first += gradient
        # ε is added to the root of the corrected second moment, as in the paper.
        np.sqrt(self._second, out=self._buffer)
        self._buffer *= np.float32(1 / np.sqrt(1 - 0.999**self._steps))
        self._buffer += np.float32(1e-8)
        np.divide(self._first, self._buffer, out=self._buffer)
        self._buffer *= np.float32(1e-3 / (1 - 0.9**self._steps))
        self.parameters -= self._buffer


class RMSprop(Adam):
    """RMSprop with torch's defaults: learning rate 1e-2, α 0.99, ε 1e-8."""

    def step(self, gradient: np.ndarray) -> None:
        """Updates the parameters; the gradient is overwritten."""
        self._average(gradient, 0.99)
        np.sqrt(self._second, out=self._buffer)
        self._buffer += np.float32(1e-8)
        gradient /= self._buffer
        gradient *= np.float32(1e-2)
        self.parameters -= gradient


OPTIMIZERS: dict[str, type[Adam]] = {"adam": Adam, "rmsprop": RMSprop}


class EarlyStopping:
    """Follows the dev accuracies of several trainings: the `best` ones, and which are `running`.

    The counter of evaluations that were no better than the best is never reset: a training stops at
    the (tenacity + 1)-th of them, consecutive or not (senteval/tools/classifier.py, `fit`).
    """

    def __init__(self, shape: tuple[int, ...], tenacity: int) -> None:
        self.best = np.full(shape, -1.0)
        self.running = np.ones(shape, bool)
        self._misses = np.zeros(shape, np.int64)
        self._tenacity = tenacity

    def update(self, accuracies: np.ndarray) -> np.ndarray:
        """Takes one evaluation of each training; returns which of the running ones improved."""
        better = self.running & (accuracies > self.best)
        self.best[better] = accuracies[better]
        self._misses += self.running & ~better
        self.running &= self._misses <= self._tenacity
        return better


@dataclass(frozen=True)
class SentEvalClassifier(Classifier):
    """Logistic regression by mini-batches (senteval/tools/classifier.py).

    Attributes:
        optimizer: "adam" or "rmsprop".
        batch_size: Rows per step.
        tenacity: Evaluations without improvement that are allowed; their counter is never reset.
        epoch_size: Passes over the data between evaluations.
        max_epoch: No evaluation starts after more passes than this.
        folds: Number of folds of cross-validation.
        seed: Seed of initial weights, batches, held-out rows, and the folds of `kfold`.
    """

    optimizer: str = "adam"
    batch_size: int = 64
    tenacity: int = 5
    epoch_size: int = 4
    max_epoch: int = 200
    folds: int = 10
    seed: int = 1111

    name: ClassVar[str] = "senteval"
    grids: ClassVar[dict[str, tuple[float, ...]]] = dict.fromkeys(
        ("inner_kfold", "kfold", "split"), _GRID
    )

    @property
    def title(self) -> str:
        """A description for people, with its source."""
        return (
            f"SentEval's own classifier (senteval: logistic regression, {self.optimizer}, batches "
            f"of {self.batch_size}, tenacity {self.tenacity}, epoch size {self.epoch_size})"
        )

    def options(self) -> dict[str, Any]:
        """The name and all settings; as in all earlier records, a hidden layer of size 0."""
        return {"classifier": self.name, "hidden_dim": 0, "dropout": 0.0, **asdict(self)}

    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[Sequence[float]],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
    ) -> list[list[TrainedClassifier]]:
        """See `Classifier.fit`. Without dev rows, 5 % of a fold's training rows are held out.

        The regularisations of a fold have the same seed, so they share initial weights and batches
        and are trained together. Folds of equal size are trained together, too.
        """
        dev = data if dev is None else dev
        places_by_size: dict[tuple[int, bool], list[int]] = {}
        for place, fold in enumerate(folds):
            places_by_size.setdefault((len(fold.train), fold.dev is None), []).append(place)
        trained: dict[int, list[TrainedClassifier]] = {}
        with one_blas_thread():
            for places in places_by_size.values():
                for start in range(0, len(places), _GROUPS):
                    batch = places[start : start + _GROUPS]
                    chosen = [folds[place] for place in batch], [grid[place] for place in batch]
                    training = ParallelTraining(self, data, dev, *chosen, classes)
                    trained.update(zip(batch, training.run(), strict=True))
        return [trained[place] for place in range(len(folds))]


class ParallelTraining:
    """The trainings of some folds with several regularisations each.

    The folds have equal numbers of training rows, and either all or none of them have dev rows;
    `grid` is `[folds][regularisations]`.
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
        self._networks = Networks(factors.shape[1], data.features.shape[1], classes)
        self._classes = np.arange(classes)[:, None]
        self._randoms = [np.random.RandomState(settings.seed) for _ in folds]
        self._rows = [
            _held_out(fold, random) for fold, random in zip(folds, self._randoms, strict=True)
        ]
        # Torch has a generator of its own with the same seed.
        draws = np.random.RandomState(settings.seed)
        layer = torch_linear(draws, data.features.shape[1], classes)
        rows = np.repeat(self._networks.pack(*layer)[None], len(folds), axis=0)
        decay = np.empty_like(rows)
        for array in self._networks.unpack(decay):
            array[...] = factors.reshape(*factors.shape, *[1] * (array.ndim - 2))
        self._optimizer = OPTIMIZERS[settings.optimizer](rows, decay)
        self._gradient = np.empty_like(rows)
        self._batch = np.empty(
            (len(folds) * settings.batch_size, data.features.shape[1]), np.float32
        )
        self._best = rows.copy()
        self._stopping = EarlyStopping(factors.shape, settings.tenacity)
        self._groups = np.arange(len(folds))  # the groups that are still trained

    def run(self) -> list[list[TrainedClassifier]]:
        """Trains until all have stopped; the classifiers are `[folds][regularisations]`."""
        settings = self._settings
        for _ in range(settings.max_epoch // settings.epoch_size + 1):
            for _ in range(settings.epoch_size):
                self._epoch()
            self._evaluate()
            if not len(self._groups):
                break
        fold_results = self._stopping.best.tolist(), *self._networks.unpack(self._best)
        return [
            [TrainedClassifier(*of_one) for of_one in zip(*of_fold, strict=True)]
            for of_fold in zip(*fold_results, strict=True)
        ]

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
        self._networks.gradient(self._optimizer.parameters, features, targets, self._gradient)
        self._optimizer.step(self._gradient)

    def _evaluate(self) -> None:
        """Scores the dev rows, keeps improved parameters and drops the groups that are done."""
        accuracies = np.zeros_like(self._stopping.best)
        for place, group in enumerate(self._groups):
            _, dev = self._rows[group]
            accuracies[group] = self._accuracies(place, dev)
        better = self._stopping.update(accuracies)
        parameters = self._networks.unpack(self._optimizer.parameters)
        best = self._networks.unpack(self._best)
        for place, group in enumerate(self._groups):
            for current, best_array in zip(parameters, best, strict=True):
                best_array[group, better[group]] = current[place, better[group]]
        running = np.any(self._stopping.running[self._groups], axis=1)
        if not running.all():
            self._groups = self._groups[running]
            self._optimizer.keep(running)
            self._gradient = self._gradient[running]

    def _accuracies(self, place: int, rows: np.ndarray) -> np.ndarray:
        """Accuracies `[regularisations]` of a group on dev rows."""
        parameters = self._optimizer.parameters[place : place + 1]
        correct = np.zeros(self._networks.count, np.int64)
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            features = self._dev.read(block)[None]
            (logits,) = self._networks.logits(parameters, features)
            correct += (logits.argmax(axis=1) == self._dev.labels[block]).sum(axis=1)
        return correct / len(rows)


def _held_out(fold: Fold, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Training and dev rows of a fold; if it has no dev rows, 5 % of its training rows."""
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
