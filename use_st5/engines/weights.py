"""The weights of a SavedModel by the names of their layers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

from use_st5.engines.bundle import Bundle

# How the names of weights end that each layer has.
_OF_LAYERS = ("/kernel", "/kernel_codes", "/gamma", "/scale")
_APART = "use_st5.json and the variables do not belong together. Export the model again."


class Table(NamedTuple):
    """A token table.

    Attributes:
        codes: float32 or int8 `[rows, dim]`.
        scales: float32 `[rows]` for int8 codes; None for float32.
    """

    codes: np.ndarray
    scales: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and width."""
        return self.codes.shape


class TableRows(threading.local):
    """Reads rows of a table into arrays that each thread reuses.

    New arrays of this size would come from the system and go back to it in each call: the page
    faults took up to a third of the time of `DANEngine.run`.

    Attributes:
        table: The table.
    """

    def __init__(self, table: Table, most: int) -> None:
        self.table = table
        self._codes = np.empty((most, table.shape[1]), table.codes.dtype)
        self._rows = self._codes
        self._scales = np.ones(most, np.float32)
        if table.scales is not None:
            self._rows = np.empty(self._codes.shape, np.float32)

    def __call__(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows without their scales, float32 `[ids, dim]`, and the scales, float32 `[ids]`.

        Both are overwritten by the next call.
        """
        rows, scales = self._rows[: len(ids)], self._scales[: len(ids)]
        # Ids are below the number of rows: `take` need not check them.
        codes = self.table.codes.take(ids, 0, out=self._codes[: len(ids)], mode="clip")
        if self.table.scales is not None:
            np.copyto(rows, codes)
            self.table.scales.take(ids, out=scales, mode="clip")
        return rows, scales


class Weights:
    """Finds the weights of a model by name and shape."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._bundle = folder, Bundle(folder)
        # The first part of a path is the name of the model.
        self._keys = {
            path.partition("/")[2]: key for key, path in self._bundle.names.items() if "/" in path
        }
        self._unread = {name for name in self._keys if name.endswith(_OF_LAYERS)}

    def __call__(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The weight of a name, in float32."""
        self._unread -= {name, f"{name}_codes"}
        if f"{name}_codes" in self._keys:
            codes = self._bundle.array(self._keys[f"{name}_codes"])
            scales = self._bundle.array(self._keys[f"{name}_scales"])
            weight = codes.astype(np.float32) * scales
        elif name in self._keys:
            weight = np.array(self._bundle.array(self._keys[name]))
        else:
            raise ValueError(f"{self._folder}: expected a weight {name}, found none: {_APART}")
        return self._checked(name, weight, shape)

    def table(self) -> Table:
        """The token table."""
        if "table_codes" in self._bundle.names:
            codes = np.asarray(self._bundle.array("table_codes"))
            scales = np.array(self._bundle.array("table_scales"))
            return Table(codes, self._checked("table_scales", scales, codes.shape[:1]))
        key = self._keys.get("embedding/embeddings", "table")
        embeddings = np.asarray(self._bundle.array(key))
        return Table(self._checked("embedding", embeddings, embeddings.shape))

    def check_all_read(self) -> None:
        """Refuses variables with layers that were not read: the vectors would be wrong."""
        if self._unread:
            raise ValueError(
                f"{self._folder}: expected a configuration with the layer of "
                f"{min(self._unread)}, found one without it: {_APART}"
            )

    def _checked(self, name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        check_shape(self._folder, name, values.shape, shape)
        if not np.isfinite(values).all():
            raise ValueError(
                f"{self._folder}: expected finite weights, {name} holds NaN or infinity. Copy the "
                "model again, or train it again with a smaller learning rate."
            )
        return values


def check_shape(folder: Path, name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuses a weight of another shape than the configuration says."""
    if tuple(shape) != tuple(expected):
        raise ValueError(
            f"{folder}: expected {name} of the shape {list(expected)}, found {list(shape)}: "
            f"{_APART}"
        )


def int8_codes(weights: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounds weights to codes in −127 … 127 with a scale for all entries along an axis.

    Args:
        weights: float32 `[rows, columns]`.
        axis: 1: a scale for each row; 0: for each column.

    Returns:
        int8 `[rows, columns]`, and float32 `[rows, 1]` or `[1, columns]`.
    """
    if not np.isfinite(weights).all():
        raise ValueError("Expected finite weights to store as int8, received NaN or infinity.")
    largest = np.abs(weights).max(axis=axis, keepdims=True)
    scales = np.where(largest > 0, largest / 127, 1.0).astype(np.float32)
    return np.rint(weights / scales).clip(-127, 127).astype(np.int8), scales
