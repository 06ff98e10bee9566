"""The kinds of columns of training data, for files, losses and the trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

KindName = Literal["ids", "token_ids", "label", "score", "vector"]


@dataclass(frozen=True)
class ColumnKind:
    """One kind of column.

    Attributes:
        shape: The shape of a batch, as the names of its axes.
        dtype: The type on disk, little-endian.
        of_text: Whether it is made from a text.
    """

    shape: tuple[str, ...]
    dtype: np.dtype
    of_text: bool = False

    def holds(self, dtype: np.dtype) -> bool:
        """Whether an array of this type may be such a column: any integers, or any floats."""
        return dtype.kind in ("f" if self.dtype.kind == "f" else "iu")

    @property
    def numbers(self) -> str:
        """The kind of its numbers, in words."""
        return "floats" if self.dtype.kind == "f" else "integers"


_INTEGERS, _FLOATS = np.dtype("<i4"), np.dtype("<f4")

# 0 is padding in both kinds of ids: an encoder reads "ids", a decoder predicts "token_ids".
COLUMN_KINDS: dict[KindName, ColumnKind] = {
    "ids": ColumnKind(("batch", "length"), _INTEGERS, of_text=True),
    "token_ids": ColumnKind(("batch", "length"), _INTEGERS, of_text=True),
    "label": ColumnKind(("batch",), _INTEGERS),
    "score": ColumnKind(("batch",), _FLOATS),
    "vector": ColumnKind(("batch", "width"), _FLOATS),
}
