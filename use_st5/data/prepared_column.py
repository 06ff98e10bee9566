"""One array of a prepared data set: the values that it reads and their type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from use_st5.data.column_kinds import COLUMN_KINDS, KindName

if TYPE_CHECKING:
    from use_st5.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class PreparedColumn:
    """One array of a prepared data set.

    Attributes:
        kind: "ids": a text as encoder ids, int32 `[rows, length]`; "token_ids": a text as decoder
            targets, int32 `[rows, max_tokens]`; "label": int32 `[rows]`; "score": float32 `[rows]`;
            "vector": float32 `[rows, dim]`.
        max_tokens: Tokens of a text beyond this number are cut. The kinds of text need it; the
            others must not have it.
        key: The key of the example that holds the value; None: the array's own name.

    Raises:
        ValueError: The kind is unknown, or `max_tokens` does not fit it.
    """

    kind: KindName
    max_tokens: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in COLUMN_KINDS:
            raise ValueError(f"kind: expected one of {[*COLUMN_KINDS]}, received {self.kind!r}.")
        of_text = COLUMN_KINDS[self.kind].of_text
        if of_text != (self.max_tokens is not None):
            requirement = "expected a number" if of_text else "expected None"
            raise ValueError(
                f"max_tokens: {requirement} for a column of kind {self.kind!r}, received "
                f"{self.max_tokens}."
            )
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens: expected 1 or more, received {self.max_tokens}.")

    @property
    def dtype(self) -> np.dtype:
        """The array's type on disk, little-endian."""
        return COLUMN_KINDS[self.kind].dtype

    def array(self, values: list[Any], tokenizer: Tokenizer) -> np.ndarray:
        """Returns the values of some rows as an array `[rows, …]`.

        Raises:
            ValueError: A value is not of the column's kind.
        """
        if COLUMN_KINDS[self.kind].of_text:
            return self._ids(values, tokenizer)
        if self.kind == "label":
            return _labels(values, self.dtype)
        if self.kind == "score":
            return _scores(values, self.dtype)
        return _vectors(values, self.dtype)

    def _ids(self, values: list[Any], tokenizer: Tokenizer) -> np.ndarray:
        for value in values:
            if not isinstance(value, str):
                raise ValueError(f"expected text, received {type(value).__name__}: {value!r:.80}")
        to_ids: Callable[..., Any] = tokenizer.padded if self.kind == "ids" else tokenizer.token_ids
        ids = np.asarray(to_ids(values, self.max_tokens)).astype(self.dtype, copy=False)
        # The ids for an encoder may be only as wide as the longest of these texts.
        return np.pad(ids, [(0, 0), (0, max(0, (self.max_tokens or 0) - ids.shape[1]))])


def _labels(values: list[Any], dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    for value in values:
        is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not is_whole or not limits.min <= value <= limits.max:
            raise ValueError(f"expected an int32 label, received {value!r:.80}")
    return np.array(values, dtype=dtype)


def _scores(values: list[Any], dtype: np.dtype) -> np.ndarray:
    for value in values:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not np.isfinite(value):
            raise ValueError(f"expected a finite number as the score, received {value!r:.80}")
    return np.array(values, dtype=dtype)


def _vectors(values: list[Any], dtype: np.dtype) -> np.ndarray:
    vectors = [np.asarray(value) for value in values]
    first = vectors[0]
    for vector in vectors:
        if vector.ndim != 1 or vector.dtype.kind not in "fiu" or vector.shape != first.shape:
            raise ValueError(
                f"expected a numeric vector of shape {first.shape[:1]}, "
                f"received {vector.dtype} of shape {vector.shape}"
            )
    array = np.stack(vectors).astype(dtype)
    if not np.isfinite(array).all():
        raise ValueError("expected a vector of finite numbers, received NaN or infinity")
    return array
