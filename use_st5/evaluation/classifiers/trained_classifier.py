"""A classifier that has been trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from use_st5.evaluation.classifiers.labelled_features import LabelledFeatures

# Rows that are read and scored at once: 16 MB of 4,096 features.
BLOCK = 1024


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
