"""Torch without torch, as far as SentEval uses it: small networks, their weights, their optimisers.

Many networks are trained side by side. Those of one group see the same batches; groups × networks
have equal sizes. All parameters of a group lie in one row, so that an optimiser updates everything
with a few array operations. Optimisers have torch's defaults, with L2 in the gradient.

Torch's generator on the CPU is the Mersenne Twister, seeded as NumPy's `RandomState` is; a float32
uniform number is made of the 24 low bits of a 32-bit draw (ATen/core/TransformationHelper.h).
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.classifiers.classifier import sigmoid


@dataclass(frozen=True)
class Networks:
    """The shape of the networks of one group, and their arithmetic.

    Linear, or linear, dropout, sigmoid and linear, with cross-entropy on softmax.

    Attributes:
        count: Networks in a group.
        inputs: Dimension of the features.
        hidden: Hidden units; 0 for a linear network.
        classes: Outputs.
        dropout: Rate in training.
    """

    count: int
    inputs: int
    hidden: int
    classes: int
    dropout: float = 0.0

    def sizes(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        if not self.hidden:
            return [(self.inputs, self.classes)]
        return [(self.inputs, self.hidden), (self.hidden, self.classes)]

    def pack(self, layers: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """The row `[parameters]` of a group whose networks all have these layers."""
        parts = [
            np.broadcast_to(array, (self.count, *array.shape)).ravel()
            for layer in layers
            for array in layer
        ]
        return np.concatenate(parts)

    def unpack(self, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Views: weights `[groups, count, outputs, inputs]`, biases `[groups, count, outputs]`."""
        layers, start = [], 0
        for inputs, outputs in self.sizes():
            middle = start + self.count * outputs * inputs
            end = middle + self.count * outputs
            weights = rows[:, start:middle].reshape(-1, self.count, outputs, inputs)
            layers.append((weights, rows[:, middle:end].reshape(-1, self.count, outputs)))
            start = end
        return layers

    def logits(self, rows: np.ndarray, features: np.ndarray) -> np.ndarray:
        """`[groups, count, classes, batch]` for features `[groups, batch, inputs]`."""
        return self._forward(rows, features, None)[-1]

    def gradient(
        self,
        rows: np.ndarray,
        features: np.ndarray,
        targets: np.ndarray,
        out: np.ndarray,
        mask: np.ndarray | None = None,
    ) -> None:
        """The gradient of the mean cross-entropy of each network.

        Args:
            rows: `[groups, parameters]`.
            features: `[groups, batch, inputs]`.
            targets: One-hot `[groups, 1, classes, batch]`.
            out: Gets the gradient, `[groups, parameters]`.
            mask: Factors of dropout for the hidden units, `[1, 1, hidden, batch]`.
        """
        layers, gradients = self.unpack(rows), self.unpack(out)
        *hidden, errors = self._forward(rows, features, mask)
        errors -= errors.max(axis=2, keepdims=True)
        np.exp(errors, out=errors)
        errors /= errors.sum(axis=2, keepdims=True)
        errors -= targets
        errors *= np.float32(1 / features.shape[1])
        if hidden:
            weights, biases = gradients[1]
            np.matmul(errors, hidden[0].swapaxes(2, 3), out=weights)
            errors.sum(axis=3, out=biases)
            errors = layers[1][0].swapaxes(2, 3) @ errors
            errors *= hidden[0] * (1 - hidden[0])
            if mask is not None:
                errors *= mask
        groups, batch, _ = features.shape
        weights, biases = gradients[0]
        flat = weights.reshape(groups, -1, self.inputs)
        np.matmul(errors.reshape(groups, -1, batch), features, out=flat)
        errors.sum(axis=3, out=biases)

    def _forward(
        self, rows: np.ndarray, features: np.ndarray, mask: np.ndarray | None
    ) -> list[np.ndarray]:
        """The activations `[groups, count, units, batch]` of the hidden layer and the logits."""
        groups, batch, inputs = features.shape
        (weights, biases), *more = self.unpack(rows)
        flat = weights.reshape(groups, -1, inputs) @ features.swapaxes(1, 2)
        outputs = flat.reshape(groups, self.count, -1, batch)
        outputs += biases[..., None]
        if not more:
            return [outputs]
        if mask is not None:
            outputs *= mask
        activations = sigmoid(outputs)
        weights, biases = more[0]
        return [activations, weights @ activations + biases[..., None]]


def torch_linear(
    random: np.random.RandomState, inputs: int, outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights `[outputs, inputs]` and biases `[outputs]` as `torch.nn.Linear` initialises them.

    Equal to the last bit after `torch.manual_seed(seed)` where `random` is `RandomState(seed)` and
    neither was used before (`kaiming_uniform_` with a = √5; torch/nn/modules/linear.py).
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


class Optimizer(abc.ABC):
    """Updates parameters in place.

    Args:
        parameters: Float32, any shape.
        decay: L2 factor of each parameter, same shape: `decay * parameter` is added to its
            gradient before anything else (torch's `weight_decay`).
    """

    def __init__(self, parameters: np.ndarray, decay: np.ndarray) -> None:
        self.parameters, self._decay = parameters, decay
        self._second = np.zeros_like(parameters)
        self._buffer = np.empty_like(parameters)

    @abc.abstractmethod
    def step(self, gradient: np.ndarray) -> None:
        """Updates the parameters; the gradient is overwritten."""

    def keep(self, rows: np.ndarray) -> None:
        """Goes on with some of the first axis only."""
        self.parameters, self._decay = self.parameters[rows], self._decay[rows]
        self._second, self._buffer = self._second[rows], self._buffer[rows]

    def _add_decay(self, gradient: np.ndarray) -> None:
        np.multiply(self.parameters, self._decay, out=self._buffer)
        gradient += self._buffer

    def _average_squares(self, gradient: np.ndarray, rate: float) -> None:
        np.multiply(gradient, gradient, out=self._buffer)
        self._buffer *= np.float32(1 - rate)
        self._second *= np.float32(rate)
        self._second += self._buffer


class Adam(Optimizer):
    """Adam (arXiv 1412.6980, algorithm 1): rate 1e-3, β 0.9 and 0.999, ε 1e-8."""

    RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8

    def __init__(self, parameters: np.ndarray, decay: np.ndarray) -> None:
        super().__init__(parameters, decay)
        self._first = np.zeros_like(parameters)
        self._steps = 0

    def step(self, gradient: np.ndarray) -> None:
        """Updates the parameters; the gradient is overwritten."""
        self._steps += 1
        self._add_decay(gradient)
        self._average_squares(gradient, self.BETA2)
        gradient *= np.float32(1 - self.BETA1)
        self._first *= np.float32(self.BETA1)
        self._first += gradient
        # ε is added to the root of the corrected second moment, as in the paper.
        np.sqrt(self._second, out=self._buffer)
        self._buffer *= np.float32(1 / np.sqrt(1 - self.BETA2**self._steps))
        self._buffer += np.float32(self.EPSILON)
        np.divide(self._first, self._buffer, out=self._buffer)
        self._buffer *= np.float32(self.RATE / (1 - self.BETA1**self._steps))
        self.parameters -= self._buffer

    def keep(self, rows: np.ndarray) -> None:
        """Goes on with some of the first axis only."""
        super().keep(rows)
        self._first = self._first[rows]


class RMSprop(Optimizer):
    """RMSprop with torch's defaults: rate 1e-2, α 0.99, ε 1e-8."""

    RATE, ALPHA, EPSILON = 1e-2, 0.99, 1e-8

    def step(self, gradient: np.ndarray) -> None:
        """Updates the parameters; the gradient is overwritten."""
        self._add_decay(gradient)
        self._average_squares(gradient, self.ALPHA)
        np.sqrt(self._second, out=self._buffer)
        self._buffer += np.float32(self.EPSILON)
        gradient /= self._buffer
        gradient *= np.float32(self.RATE)
        self.parameters -= gradient


OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": Adam, "rmsprop": RMSprop}
