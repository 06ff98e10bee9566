"""An encoder whose vectors a test chooses, and hand-written pieces of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from use_st5.losses.task_loss import Gather


class FixedEncoder:
    """Returns row `ids[i, 0]` of a table, unchanged."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = ops.convert_to_tensor(table.astype(np.float32))
        self.dimension = table.shape[1]

    def __call__(self, ids: Any, training: bool = False) -> Any:
        del training
        return ops.take(self.table, ids[:, 0], axis=0)


class RecordedGather(Gather):
    """Acts as replica `index` of several; a first pass has recorded the rows of all of them."""

    def __init__(self, index: int, replicas: int, recorded: list[list[Any]]) -> None:
        self.index = index
        self.replicas = replicas
        self.recorded = recorded
        self.calls = 0

    def __call__(self, rows: Any) -> Any:
        if len(self.recorded) <= self.calls:
            self.recorded.append([None] * self.replicas)
        self.recorded[self.calls][self.index] = rows
        parts = [rows if part is None else part for part in self.recorded[self.calls]]
        self.calls += 1
        return ops.concatenate(parts, axis=0)

    def first_row(self, rows: Any) -> Any:
        return self.index * rows


def over_replicas(loss: Any, encoder: Any, batch: dict[str, np.ndarray], replicas: int) -> float:
    """The mean of a loss over replicas that share a batch."""
    parts = [
        {name: np.split(column, replicas)[index] for name, column in batch.items()}
        for index in range(replicas)
    ]
    recorded: list[list[Any]] = []
    for _ in range(2):  # the first pass records the rows of all replicas
        losses = [
            float(loss(encoder, part, gather=RecordedGather(index, replicas, recorded))[0])
            for index, part in enumerate(parts)
        ]
    return float(np.mean(losses))


def unit(x: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def log_softmax(x: np.ndarray) -> np.ndarray:
    """Over the last axis, in float64."""
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def one_id(count: int, length: int = 3, start: int = 0) -> np.ndarray:
    """Ids `[count, length]` whose first column is `start … start + count − 1`, then padding."""
    ids = np.zeros((count, length), np.int32)
    ids[:, 0] = np.arange(start, start + count)
    return ids


def weights(layer: Any) -> list[np.ndarray]:
    """A dense layer's kernel and bias in float64."""
    return [np.asarray(value, np.float64) for value in layer.get_weights()]
