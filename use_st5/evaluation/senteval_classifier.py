"""SentEval's own classifier without torch: logistic regression.

Initial weights, held-out rows and the order of the batches are those that the original draws with
torch (senteval/tools/classifier.py). Torch's generator on the CPU is the Mersenne Twister, seeded
as NumPy's `RandomState` is; a float32 uniform number is made of the 24 low bits of a 32-bit draw
(ATen/core/TransformationHelper.h).
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

_HELD_OUT = 0.05


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
        ("inner_kfold", "kfold", "split"), (1e-5, 1e-4, 1e-3, 1e-2)
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
        grid: Sequence[float],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
    ) -> list[list[TrainedClassifier]]:
        """See `Classifier.fit`. Without dev rows, 5 % of a fold's training rows are held out."""
        with one_blas_thread():
            return [
                self._fit(data, fold, grid, classes, data if dev is None else dev) for fold in folds
            ]

    def _fit(
        self,
        data: LabelledFeatures,
        fold: Fold,
        grid: Sequence[float],
        classes: int,
        dev: LabelledFeatures,
    ) -> list[TrainedClassifier]:
        """All regularisations together: they have the same seed, and so the same batches."""
        # Torch and NumPy have generators of their own with the same seed.
        random, draws = (np.random.RandomState(self.seed) for _ in range(2))
        rows, dev_rows = fold.train, fold.dev
        if dev_rows is None:
            order = rows[random.permutation(len(rows))]
            held_out = int(_HELD_OUT * len(order))
            rows, dev_rows = order[held_out:], order[:held_out]
            if not held_out:
                raise ValueError(f"expected at least 20 training rows, received {len(order)}.")
        inputs, strengths = data.features.shape[1], len(grid)
        weights, biases = torch_linear(draws, inputs, classes)
        layer = np.concatenate([weights, biases[:, None]], axis=1)  # the biases are the last column
        parameters = np.repeat(layer[None], strengths, axis=0)
        decay = np.broadcast_to(np.array(grid, np.float32)[:, None, None], parameters.shape)
        optimizer = OPTIMIZERS[self.optimizer](parameters, decay)
        gradient, best = np.empty_like(parameters), parameters.copy()
        # Fresh memory for each step would cost more than the step.
        batch = np.empty((self.batch_size, inputs), np.float32)
        accuracies, misses = np.full(strengths, -1.0), np.zeros(strengths, np.int64)
        for epoch in range(self.max_epoch // self.epoch_size * self.epoch_size + self.epoch_size):
            shuffled = rows[random.permutation(len(rows))]
            for start in range(0, len(rows), self.batch_size):
                chosen = shuffled[start : start + self.batch_size]
                features = data.read(chosen, out=batch[: len(chosen)])
                _cross_entropy_gradient(parameters, features, data.labels[chosen], gradient)
                optimizer.step(gradient)
            if (epoch + 1) % self.epoch_size:
                continue
            running = misses <= self.tenacity
            current = _accuracies(parameters, dev, dev_rows)
            better = running & (current > accuracies)
            accuracies[better], best[better] = current[better], parameters[better]
            misses += running & ~better
            if (misses > self.tenacity).all():
                break
        return [
            TrainedClassifier(accuracy, each[:, :-1], each[:, -1])
            for accuracy, each in zip(accuracies.tolist(), best, strict=True)
        ]


def _logits(parameters: np.ndarray, features: np.ndarray) -> np.ndarray:
    """`[networks, classes, rows]` of parameters `[networks, classes, inputs + 1]`."""
    networks, classes, _ = parameters.shape
    flat = parameters.reshape(networks * classes, -1)
    return (flat[:, :-1] @ features.T + flat[:, -1:]).reshape(networks, classes, -1)


def _cross_entropy_gradient(
    parameters: np.ndarray, features: np.ndarray, labels: np.ndarray, out: np.ndarray
) -> None:
    """The gradient of each network's mean cross-entropy over `features` `[rows, inputs]`."""
    errors = _logits(parameters, features)
    errors -= errors.max(axis=1, keepdims=True)
    np.exp(errors, out=errors)
    errors /= errors.sum(axis=1, keepdims=True)
    errors -= labels == np.arange(parameters.shape[1])[:, None]
    errors *= np.float32(1 / len(labels))
    flat = errors.reshape(-1, len(labels))
    out.reshape(len(flat), -1)[:, :-1] = flat @ features
    out[..., -1] = errors.sum(axis=2)


def _accuracies(parameters: np.ndarray, data: LabelledFeatures, rows: np.ndarray) -> np.ndarray:
    """The accuracy of each network on some rows."""
    correct = np.zeros(len(parameters), np.int64)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        predicted = _logits(parameters, data.read(block)).argmax(axis=1)
        correct += (predicted == data.labels[block]).sum(axis=1)
    return correct / len(rows)
