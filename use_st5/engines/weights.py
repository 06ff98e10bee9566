"""The weights of a SavedModel by the names of their layers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from use_st5.engines.bundle import Bundle

# How the names of weights end that each layer has.
_OF_LAYERS = ("/kernel", "/kernel_codes", "/gamma", "/scale")


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

    Args:
        table: The table.
        most: Maximum number of rows of a call.

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
    """Finds the weights of a model by name and shape.

    Args:
        folder: The folder of its SavedModel.
        bundle: Its variables.
        rounded: As for `named_weights`.
    """

    def __init__(self, folder: Path, bundle: Bundle, rounded: Sequence[str]) -> None:
        self._folder, self._bundle = folder, bundle
        # The first part of a path is the name of the model.
        self._keys = {
            path.partition("/")[2]: key for key, path in bundle.names.items() if "/" in path
        }
        self._unnamed = dict(zip(rounded, _unnamed(bundle), strict=False))
        self._unread = {each for each in self._keys if each.endswith(_OF_LAYERS)}

    def __call__(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Returns a weight.

        Raises:
            ValueError: It is missing, has another shape, or is NaN or infinite.
        """
        self._unread -= {name, f"{name}_codes"}
        codes = self._keys.get(f"{name}_codes", self._unnamed.get(name))
        if codes is not None:
            scales = self._bundle.array(_next(codes))
            found = self._bundle.array(codes).astype(np.float32) * scales
        elif name in self._keys:
            found = np.array(self._bundle.array(self._keys[name]))
        else:
            raise ValueError(
                f"{self._folder}: expected a weight {name}, found none: use_st5.json and the "
                "variables do not belong together. Export the model again."
            )
        check_shape(self._folder, name, found.shape, shape)
        _check_finite(self._folder, name, found)
        return found

    def table(self) -> Table:
        """Returns the token table.

        Raises:
            ValueError: There is none, or it is NaN or infinite.
        """
        if "table_codes" in self._bundle.names:
            codes = self._bundle.array("table_codes")
            scales = np.array(self._bundle.array("table_scales"))
            check_shape(self._folder, "table_scales", scales.shape, codes.shape[:1])
            _check_finite(self._folder, "table_scales", scales)
            return Table(np.asarray(codes), scales)
        key = self._keys.get("embedding/embeddings", "table")
        embeddings = np.asarray(self._bundle.array(key))
        _check_finite(self._folder, "embedding", embeddings)
        return Table(embeddings)

    def check_all_read(self) -> None:
        """Checks that no layer is left out: the vectors would be wrong.

        Raises:
            ValueError: The variables have layers whose weights were not read.
        """
        if self._unread:
            raise ValueError(
                f"{self._folder}: expected a configuration with the layer of "
                f"{min(self._unread)}, found one without it: use_st5.json and the variables do not "
                "belong together. Export the model again."
            )


def named_weights(folder: Path, *, rounded: Sequence[str] = ()) -> tuple[Table, Weights]:
    """The token table of a model, and its other weights by name and shape.

    Args:
        folder: The folder of its SavedModel.
        rounded: The names of the matrices that an int8 model of use_st5 0.2 stores as unnamed codes
            and scales, in the model's order.

    Raises:
        FileNotFoundError: The folder has no variables.
        ValueError: There is no table, or it is NaN or infinite.
    """
    weights = Weights(folder, Bundle(folder), rounded)
    return weights.table(), weights


def _unnamed(bundle: Bundle) -> list[str]:
    """The keys of the variables that hold unnamed codes of matrices, in their order."""
    keys = [key for key, path in bundle.names.items() if path == "kernel_codes"]
    return sorted(keys, key=_number)


def _number(key: str) -> int:
    return int(key.rpartition("/")[2])


def _next(key: str) -> str:
    """The key of the variable after another."""
    return f"variables/{_number(key) + 1}"


def check_shape(folder: Path, name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Checks that a weight has the shape that the configuration says.

    Raises:
        ValueError: The shapes differ.
    """
    if tuple(found) != tuple(expected):
        raise ValueError(
            f"{folder}: expected {name} of the shape {list(expected)}, found {list(found)}: "
            "use_st5.json and the variables do not belong together. Export the model again."
        )


def _check_finite(folder: Path, name: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            f"{folder}: expected finite weights, {name} holds NaN or infinity. Copy the model "
            "again, or train it again with a smaller learning rate."
        )
