"""Putting the tensors of a checkpoint into variables, checked before the first is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Registers bfloat16 with NumPy, under the name that Keras uses too.
import ml_dtypes  # noqa: F401
import numpy as np

from use_st5.convert.weight_source import WeightSource

# More than these would hide the message they stand in.
_LISTED = 8

# Bytes; what TensorFlow's kernels expect of a tensor's address.
_ALIGNMENT = 64


@dataclass(frozen=True)
class Target:
    """Where a tensor goes.

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


def assign_weights(
    mapping: Mapping[str, Target],
    source: WeightSource,
    *,
    left_out: Callable[[str], bool] = lambda name: False,
    on_tensor: Callable[[str], None] = lambda name: None,
) -> None:
    """Reads every tensor of a mapping into its variable, one at a time.

    Beside the variables, one tensor is in memory, in its variable's dtype, and a piece of it as it
    is stored.

    Args:
        mapping: Name in the checkpoint → where it goes.
        source: The checkpoint.
        left_out: Whether a tensor that the mapping does not have is one that the model leaves out.
        on_tensor: Called with each name when its tensor is in place.

    Raises:
        ValueError: Tensors are missing, left over, or of other shapes than their variables; all of
            them are found before any is read. Or a tensor holds numbers that are not finite.
    """
    shapes = source.shapes()
    missing = sorted(set(mapping) - set(shapes))
    wrong = [
        f"{name}: expected {list(target.stored_shape())}, found {list(shapes[name])}"
        for name, target in mapping.items()
        if name in shapes and shapes[name] != target.stored_shape()
    ]
    left_over = [name for name in sorted(set(shapes) - set(mapping)) if not left_out(name)]
    if missing or wrong or left_over:
        raise ValueError(
            f"{source.where} does not fit the model. Missing: {listed(missing)}. "
            f"Of another shape: {listed(wrong)}. Left over: {listed(left_over)}."
        )
    for name, target in mapping.items():
        target.variable.assign(_read(name, target, source))
        on_tensor(name)


def _read(name: str, target: Target, source: WeightSource) -> np.ndarray:
    """A tensor in the shape and dtype of its variable, put together from its pieces."""
    tensor = aligned_empty(tuple(target.variable.shape), np.dtype(target.variable.dtype))
    as_stored = tensor.T if target.transposed else tensor
    row = 0
    for piece in source.pieces(name):
        rows = as_stored[row : row + len(piece)]
        rows[...] = piece
        row += len(piece)
        if not np.isfinite(rows).all():
            raise ValueError(
                f"{source.where}: expected finite numbers, {name} holds NaN or infinity."
            )
    return tensor


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array whose memory TensorFlow takes over as it is; another it would copy."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def listed(names: Iterable[str]) -> str:
    """Names with commas, the first few of many, or "none"."""
    names = list(names)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more or "none"
