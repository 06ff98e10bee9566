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
        shape: Of a batch, by the names of its axes.
        dtype: On disk, little-endian.
        of_text: Whether it is made of a text.
    """

    shape: tuple[str, ...]
    dtype: np.dtype
    of_text: bool = False

    def holds(self, dtype: np.dtype) -> bool:
        """Whether an array of this type may be such a column: any integers, or any floats."""
        return dtype.kind in ("f" if self.dtype.kind == "f" else "iu")

    @property
    def numbers(self) -> str:
        """What it holds, in words."""
        return "floats" if self.dtype.kind == "f" else "integers"


_INTEGERS, _FLOATS = np.dtype("<i4"), np.dtype("<f4")

# 0 is padding in both kinds of ids: "ids" are an encoder's, "token_ids" what a decoder predicts.
COLUMN_KINDS: dict[KindName, ColumnKind] = {
    "ids": ColumnKind(("batch", "length"), _INTEGERS, of_text=True),
    "token_ids": ColumnKind(("batch", "length"), _INTEGERS, of_text=True),
    "label": ColumnKind(("batch",), _INTEGERS),
    "score": ColumnKind(("batch",), _FLOATS),
    "vector": ColumnKind(("batch", "width"), _FLOATS),
}
