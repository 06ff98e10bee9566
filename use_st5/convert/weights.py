"""Named tensors of a checkpoint; they are assigned to variables one at a time."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

# Registers bfloat16 with NumPy, under the name that Keras uses too.
import ml_dtypes  # noqa: F401
import numpy as np


class WeightSource(abc.ABC):
    """The tensors of a checkpoint; only one of them is in memory at a time.

    Attributes:
        where: The checkpoint's file or folder, for messages.
    """

    where: str

    @abc.abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis, in order; small ones if the format can."""
        yield self.read(name)


class RenamedSource(WeightSource):
    """Some tensors of another source, under other names, and with other first rows or axes.

    Args:
        source: The checkpoint.
        names: New name → name in the checkpoint; other tensors are left out.
        first_rows: New name → a number of first rows, and which of them are kept, in order.
        reshaped: New name → new shape for the same numbers.
    """

    def __init__(
        self,
        source: WeightSource,
        names: Mapping[str, str],
        *,
        first_rows: Mapping[str, tuple[int, Sequence[int]]] | None = None,
        reshaped: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.where = source.where
        self._source = source
        self._names = dict(names)
        self._first_rows = first_rows or {}
        self._reshaped = reshaped or {}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of every tensor, without reading one."""
        stored = self._source.shapes()
        shapes = {new: stored[old] for new, old in self._names.items()} | dict(self._reshaped)
        for name, (count, kept_rows) in self._first_rows.items():
            if name in shapes:
                rows, *row = shapes[name]
                shapes[name] = (max(0, rows - count + len(kept_rows)), *row)
        return shapes

    def read(self, name: str) -> np.ndarray:
        """One tensor in the dtype it is stored in."""
        if name in self._first_rows:
            return np.concatenate([*self.pieces(name)])
        tensor = self._source.read(self._names[name])
        return tensor.reshape(self._reshaped.get(name, tensor.shape))

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """One tensor in pieces along its first axis."""
        if name in self._reshaped:
            yield self.read(name)
            return
        pieces = self._source.pieces(self._names[name])
        if name in self._first_rows:
            count, kept_rows = self._first_rows[name]
            first_piece = next(pieces)
            while len(first_piece) < count:
                first_piece = np.concatenate([first_piece, next(pieces)])
            yield np.concatenate([first_piece[list(kept_rows)], first_piece[count:]])
        yield from pieces


# A variable of this many bytes or more is written piece by piece, without a second copy in memory.
# From then on, TensorFlow copies such a variable each time it is read, which would take most of the
# time of a small model.
_LARGE = 2**28

# The most names that a message lists: more would hide the message itself.
_LISTED = 8


@dataclass(frozen=True)
class Target:
    """The variable that a tensor is assigned to.

    Attributes:
        variable: A Keras variable.
        transposed: Whether the tensor is stored as its transpose, as torch's dense kernels are.
    """

    variable: Any
    transposed: bool = False

    def stored_shape(self) -> tuple[int, ...]:
        """The shape that the tensor must have in the checkpoint."""
        shape = tuple(self.variable.shape)
        return shape[::-1] if self.transposed else shape


def check_shapes(
    expected: Mapping[str, tuple[int, ...]],
    source: WeightSource,
    *,
    left_out: Callable[[str], bool] = lambda name: False,
) -> None:
    """Compares the tensors that a model needs with a checkpoint's, by name and stored shape."""
    shapes = source.shapes()
    missing = sorted(set(expected) - set(shapes))
    mismatches = [
        f"{name}: expected {list(shape)}, found {list(shapes[name])}"
        for name, shape in expected.items()
        if shapes.get(name, shape) != shape
    ]
    unknown = [name for name in sorted(set(shapes) - set(expected)) if not left_out(name)]
    if missing or mismatches or unknown:
        wrong = {"Missing": missing, "Other shapes": mismatches, "Unknown": unknown}
        found = " ".join(f"{what}: {listed(names)}." for what, names in wrong.items())
        raise ValueError(f"{source.where}: expected the tensors of the model. {found}")


def check_layers(layers: int, source: WeightSource) -> None:
    """Checks that a checkpoint has enough tensors for a number of layers, before any is made."""
    if layers > (tensors := len(source.shapes())):
        raise ValueError(f"{source.where}: {tensors:,} tensors cannot make {layers:,} layers.")


# Some rows of a table are of no piece: 128 of T5's 32,128 are for its sentinels and a round number.
_UNUSED_ROWS = 256


def check_vocabulary(size: int, rows: int, *, folder: Path | None, given: Path | None) -> None:
    """Checks that a table has about a row for each id; a file that a user gave may be smaller."""
    if size > rows:
        raise ValueError(f"{given or folder}: {size:,} pieces, but the table has {rows:,} rows.")
    if not given and rows - size > min(_UNUSED_ROWS, rows // 2):
        advice = "it may be cut. If it is right, name the file (vocabulary=, --vocabulary FILE)"
        raise ValueError(f"{folder}: {size:,} pieces, but the table {rows:,} rows: {advice}.")


def assign_weights(mapping: Mapping[str, Target], source: WeightSource) -> None:
    """Reads every tensor of a mapping into its variable, one at a time; see `check_shapes`."""
    for name, target in mapping.items():
        variable, row = target.variable, 0
        stored = math.prod(variable.shape) * np.dtype(variable.dtype).itemsize
        in_place = keras.backend.backend() == "tensorflow" and stored >= _LARGE
        tensor = None if in_place else np.empty(target.stored_shape(), variable.dtype)
        for piece in source.pieces(name):
            check_weights(piece, name, source)
            rows = len(piece)
            if tensor is None:
                # Without the copy of the variable that `assign` would make.
                import tensorflow as tf

                begin, size = [row] + [0] * (piece.ndim - 1), list(piece.shape)
                if target.transposed:
                    begin, size, piece = begin[::-1], size[::-1], piece.T
                tf.raw_ops.ResourceStridedSliceAssign(
                    ref=variable.value.handle,
                    begin=begin,
                    end=np.add(begin, size),
                    strides=[1] * piece.ndim,
                    value=np.asarray(piece, variable.dtype),
                )
            else:
                tensor[row : row + rows] = piece
            row += rows
        if tensor is not None:
            variable.assign(tensor.T if target.transposed else tensor)


def check_weights(piece: np.ndarray, name: str, source: WeightSource) -> None:
    """Checks that numbers which were read from a tensor can be weights."""
    is_float = piece.dtype.kind not in "biuc"  # bfloat16 is of kind "V"
    if not (is_float and np.isfinite(piece).all()):
        what = "NaN or infinity" if is_float else piece.dtype
        raise ValueError(f"{source.where}: {name:.200}: expected finite floats, found {what}.")


def listed(names: Iterable[str]) -> str:
    """Joins names by commas, only the first few of many; "none" if there are none."""
    names = [f"{name:.200}" for name in names]
    suffix = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + suffix or "none"
