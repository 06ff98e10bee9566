"""Torch's optimisers, as far as SentEval uses them: its defaults, with L2 in the gradient."""

from __future__ import annotations

import abc

import numpy as np


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
