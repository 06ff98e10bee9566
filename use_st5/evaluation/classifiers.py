"""Classifiers on frozen embeddings, and SentEval's three ways to validate them.

The protocol is that of facebookresearch/SentEval, senteval/tools/{classifier,validation}.py, with
its rounding: accuracies in percent with two decimals decide which regularisation is best, and the
first of equals wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import softmax

from use_st5._imports import require
from use_st5.evaluation.sts import correlation

# Rows that are read and scored at once: 16 MB with 4,096 features.
BLOCK = 1024
# The original uses this for the outer and inner folds of InnerKFoldClassifier, with every seed.
_INNER_KFOLD_SEED = 1111
_HELD_OUT = 0.05

# A fold: the numbers of the rows to train on, and of those to score on. Without the latter, some of
# the former are held out.
Fold = tuple[np.ndarray, np.ndarray | None]
# A trained linear layer: its accuracy on the rows to score on, and its parameters
# `[classes, dim + 1]` with the biases as the last column.
Trained = tuple[float, np.ndarray]


class PairFeatures:
    """The features (u, v, |u − v|, u·v) of matching rows, to be indexed like a float32 array.

    These are InferSent's features (Conneau et al. 2017, section 3.1). MNLI's 393 thousand pairs
    would fill gigabytes: rows are computed when they are read, and only the embeddings are kept.
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
    """Features `[rows, dim]` and the class of each row, an integer from 0."""

    features: np.ndarray | PairFeatures
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
        """The features `[len(rows), dim]` of some rows, as float32; in `out` if it is given."""
        if out is None:
            out = np.empty((len(rows), self.features.shape[1]), np.float32)
        if isinstance(self.features, np.ndarray) and self.features.dtype == np.float32:
            # Any other mode copies through a buffer. All rows exist, so nothing is clipped.
            np.take(self.features, rows, axis=0, out=out, mode="clip")
        else:
            out[...] = self.features[rows]
        return out


@dataclass(frozen=True, eq=False)
class Classification:
    """Accuracies in 0 … 1, rounded as SentEval rounds percents, with what led to them.

    `predictions` has the class of each test row, `regularization` the chosen L2 factor of each
    trained final classifier.
    """

    dev_accuracy: float
    test_accuracy: float
    predictions: np.ndarray
    regularization: tuple[float, ...]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limits BLAS to one thread: on a busy machine, several take forty times as long here."""
    return require("threadpoolctl", "evaluation").threadpool_limits(1, user_api="blas")


def predict(
    layers: np.ndarray, data: LabelledFeatures, rows: np.ndarray | None = None
) -> np.ndarray:
    """The most likely classes by layers `[layers, classes, dim + 1]` or one layer; of all rows."""
    rows = np.arange(len(data)) if rows is None else rows
    several = layers if layers.ndim == 3 else layers[None]
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    predicted = [_logits(several, data.read(block)).argmax(axis=1) for block in blocks]
    found = np.concatenate(predicted, axis=1)
    return found if layers.ndim == 3 else found[0]


def _tested(
    layer: np.ndarray, test: LabelledFeatures, dev_percent: float, regularization: float
) -> Classification:
    predictions = predict(layer, test)
    accuracy = _fraction(_percent(predictions, test.labels))
    return Classification(_fraction(dev_percent), accuracy, predictions, (regularization,))


def _folds(count: int, labels: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if (rare := np.bincount(labels)[np.unique(labels)].min()) < count:
        raise ValueError(f"labels: expected {count} rows of each class or more, received {rare}.")
    selection = require("sklearn.model_selection", "evaluation")
    splitter = selection.StratifiedKFold(n_splits=count, shuffle=True, random_state=seed)
    yield from splitter.split(np.empty((len(labels), 0)), labels)


def _best(trained: Sequence[Sequence[Trained]]) -> tuple[int, float]:
    """The place of the best regularisation in the grid, and its mean accuracy in percent."""
    accuracies = np.array([[accuracy for accuracy, _ in fold] for fold in trained])
    percents = [round(100 * float(mean), 2) for mean in accuracies.mean(axis=0)]
    best = int(np.argmax(percents))
    return best, percents[best]


def _percent(predictions: np.ndarray, labels: np.ndarray) -> float:
    return round(100 * float(np.mean(predictions == labels)), 2)


def _fraction(percent: float) -> float:
    return round(percent / 100, 4)


def _classes(*sets: LabelledFeatures) -> int:
    return 1 + max(int(data.labels.max()) for data in sets)


@dataclass(frozen=True)
class SentEvalClassifier:
    """Logistic regression by mini-batches (senteval/tools/classifier.py), without torch.

    Initial weights, held-out rows and the order of the batches are those that the original draws
    with torch. Torch's generator on the CPU is the Mersenne Twister, seeded as NumPy's
    `RandomState` is; a float32 uniform number is made of the 24 low bits of a 32-bit draw
    (ATen/core/TransformationHelper.h).

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

    # The L2 factors that are tried.
    grid: ClassVar[tuple[float, ...]] = (1e-5, 1e-4, 1e-3, 1e-2)

    @property
    def title(self) -> str:
        """A description for people, with its source."""
        return (
            f"SentEval's own classifier (senteval: logistic regression, {self.optimizer}, batches "
            f"of {self.batch_size}, tenacity {self.tenacity}, epoch size {self.epoch_size})"
        )

    def options(self) -> dict[str, Any]:
        """The name and all settings; as in all earlier records, a hidden layer of size 0."""
        return {"classifier": "senteval", "hidden_dim": 0, "dropout": 0.0, **asdict(self)}

    def settings(self) -> dict[str, Any]:
        """The `options` that a task records: without the seed, which is that of the run."""
        return {name: value for name, value in self.options().items() if name != "seed"}

    def fit(
        self,
        data: LabelledFeatures,
        folds: Sequence[Fold],
        grid: Sequence[float],
        *,
        classes: int,
        dev: LabelledFeatures | None = None,
    ) -> list[list[Trained]]:
        """Trains on every fold with every regularisation: `[folds][regularisations]`.

        The rows of the folds are those of `data`; if `dev` is given, the rows to score on are its.
        Without rows to score on, 5 % of the training rows are held out. All regularisations have
        the same seed, and so the same batches: they are trained together.
        """
        with one_blas_thread():
            return [self._fit(data, fold, grid, classes, dev or data) for fold in folds]

    def _fit(
        self,
        data: LabelledFeatures,
        fold: Fold,
        grid: Sequence[float],
        classes: int,
        dev: LabelledFeatures,
    ) -> list[Trained]:
        # Torch and NumPy have generators of their own with the same seed.
        random, draws = (np.random.RandomState(self.seed) for _ in range(2))
        rows, dev_rows = fold
        if dev_rows is None:
            order = rows[random.permutation(len(rows))]
            held_out = int(_HELD_OUT * len(order))
            rows, dev_rows = order[held_out:], order[:held_out]
            if not held_out:
                raise ValueError(f"expected at least 20 training rows, received {len(order)}.")
        layer = torch_linear(draws, data.features.shape[1], classes)
        parameters = np.repeat(layer[None], len(grid), axis=0)
        decay = np.broadcast_to(np.array(grid, np.float32)[:, None, None], parameters.shape)
        optimizer = OPTIMIZERS[self.optimizer](parameters, decay)
        gradient, best = np.empty_like(parameters), parameters.copy()
        # Fresh memory for each step would cost more than the step.
        batch = np.empty((self.batch_size, data.features.shape[1]), np.float32)
        accuracies, misses = np.full(len(grid), -1.0), np.zeros(len(grid), np.int64)
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
            right = (predict(parameters, dev, dev_rows) == dev.labels[dev_rows]).sum(axis=1)
            current = right / len(dev_rows)
            better = running & (current > accuracies)
            accuracies[better], best[better] = current[better], parameters[better]
            misses += running & ~better
            if (misses > self.tenacity).all():
                break
        return [*zip(accuracies.tolist(), best, strict=True)]

    def inner_kfold(self, data: LabelledFeatures) -> Classification:
        """Nested cross-validation: an inner one on each training part chooses the regularisation.

        This is for data without a test set: MR, CR, SUBJ, MPQA.
        """
        classes = _classes(data)
        predictions = np.empty(len(data), np.int64)
        test_percents, chosen, dev_percents = [], [], []
        for train, dev in _folds(self.folds, data.labels, _INNER_KFOLD_SEED):
            parts = _folds(self.folds, data.labels[train], _INNER_KFOLD_SEED)
            inner = [(train[part], train[other]) for part, other in parts]
            best, percent = _best(self.fit(data, inner, self.grid, classes=classes))
            ((_, layer),) = self.fit(data, [(train, None)], [self.grid[best]], classes=classes)[0]
            predictions[dev] = predict(layer, data, dev)
            test_percents.append(_percent(predictions[dev], data.labels[dev]))
            chosen.append(self.grid[best])
            dev_percents.append(percent)
        return Classification(
            _fraction(round(float(np.mean(dev_percents)), 2)),
            _fraction(round(float(np.mean(test_percents)), 2)),
            predictions,
            tuple(chosen),
        )

    def kfold(self, *, train: LabelledFeatures, test: LabelledFeatures) -> Classification:
        """Cross-validation on the training set chooses the regularisation: TREC, MRPC."""
        classes = _classes(train, test)
        folds = [*_folds(self.folds, train.labels, self.seed)]
        best, percent = _best(self.fit(train, folds, self.grid, classes=classes))
        everything = [(np.arange(len(train)), None)]
        ((_, layer),) = self.fit(train, everything, [self.grid[best]], classes=classes)[0]
        return _tested(layer, test, percent, self.grid[best])

    def split(
        self, *, train: LabelledFeatures, dev: LabelledFeatures, test: LabelledFeatures
    ) -> Classification:
        """The dev set chooses the regularisation: SST, SICK-E, probing, SentGLUE.

        The original trains once more with the chosen regularisation. Each training sets all seeds
        again, so that gives the same classifier; here the first one is kept.
        """
        classes = _classes(train, dev, test)
        fold = (np.arange(len(train)), np.arange(len(dev)))
        trained = self.fit(train, [fold], self.grid, classes=classes, dev=dev)
        best, percent = _best(trained)
        return _tested(trained[0][best][1], test, percent, self.grid[best])


def torch_linear(random: np.random.RandomState, inputs: int, outputs: int) -> np.ndarray:
    """Parameters `[outputs, inputs + 1]` as `torch.nn.Linear` initialises them.

    They are equal to the last bit after `torch.manual_seed(seed)` if `random` is a new
    `RandomState(seed)` (`kaiming_uniform_` with a = √5; torch/nn/modules/linear.py).
    """
    gain = math.sqrt(2 / (1 + math.sqrt(5) ** 2))
    weights = _uniform(random, outputs * inputs, math.sqrt(3) * (gain / math.sqrt(inputs)))
    biases = _uniform(random, outputs, 1 / math.sqrt(inputs))
    return np.column_stack([weights.reshape(outputs, inputs), biases])


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


def soft_labels(scores: np.ndarray) -> np.ndarray:
    """Distributions `[pairs, 6]` over the scores 0 … 5 with the means `scores` `[pairs]`.

    The two neighbouring whole scores share the weight, by their distances (Tai et al., section
    4.2).
    """
    return np.maximum(1.0 - np.abs(scores[:, np.newaxis] - np.arange(6)), 0.0)


def predict_relatedness(
    *, train: LabelledFeatures, dev: LabelledFeatures, test: LabelledFeatures, seed: int = 1111
) -> np.ndarray:
    """Learns graded relatedness, labels from 0 to 5, and predicts that of the pairs of `test`.

    Tai, Socher and Manning, "Improved Semantic Representations From Tree-Structured Long Short-Term
    Memory Networks" (2015), section 4.2; senteval/tools/relatedness.py. A score y becomes a
    distribution over whole scores whose mean is y; a linear layer with a softmax learns it by
    squared error. SentEval uses the classes 1 … 5, made for SICK, for STS-B too, where a score of 0
    is then learnt as 3. Here the classes are 0 … 5. The rest is as in SentEval: Adam, batches of
    64, and Pearson's correlation on `dev` after every 50 epochs. The best weights are kept, and
    training ends at the fourth evaluation without improvement.
    """
    # The last column is for the bias.
    inputs, held_out, asked = (
        np.pad(np.asarray(part.features[:], np.float32), ((0, 0), (0, 1)), constant_values=1.0)
        for part in (train, dev, test)
    )
    targets = soft_labels(train.labels).astype(np.float32)
    generator, bound = np.random.default_rng(seed), (inputs.shape[1] - 1) ** -0.5  # as in torch
    first = generator.uniform(-bound, bound, (inputs.shape[1], targets.shape[1]))
    weights: np.ndarray = first.astype(np.float32)
    best = weights
    adam, highest, misses = Adam(weights, np.zeros_like(weights)), -1.0, 0
    with one_blas_thread():
        for epoch in range(1, 1001):
            order = generator.permutation(len(inputs))
            for start in range(0, len(order), 64):
                x, y = inputs[order[start : start + 64]], targets[order[start : start + 64]]
                probabilities = softmax(x @ weights, axis=1)
                slope = np.float32(2 / y.size) * (probabilities - y) * probabilities
                adam.step(x.T @ (slope - probabilities * slope.sum(axis=1, keepdims=True)))
            if epoch % 50:
                continue
            pearson = correlation(stats.pearsonr, _mean_scores(held_out, weights), dev.labels)
            if pearson > highest:
                best, highest = weights.copy(), pearson
            else:
                misses += 1
            if misses > 3:
                break
    return _mean_scores(asked, best)


def _mean_scores(inputs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return softmax(inputs @ weights, axis=1) @ np.arange(weights.shape[1])
