"""Many small networks that are trained side by side.

Those of one group see the same batches; groups × networks have equal sizes. All parameters of a
group lie in one row, so that an optimiser updates everything with a few array operations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.classifiers.trained_classifier import sigmoid


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
