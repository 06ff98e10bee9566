"""One array of a prepared data set: where its values come from and what they become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

ColumnKind = Literal["ids", "token_ids", "label", "vector"]

_TEXT_KINDS = ("ids", "token_ids")
_INTEGERS, _FLOATS = np.dtype("<i4"), np.dtype("<f4")
_DTYPES = {"ids": _INTEGERS, "token_ids": _INTEGERS, "label": _INTEGERS, "vector": _FLOATS}


class Vectorizer(Protocol):
    """What turns texts into ids; `use_st5.text.ngram_vectorizer.NGramVectorizer` is one."""

    vocabulary: Any

    def padded(self, text: Any, max_tokens: int | None) -> Any:
        """Encoder ids, int32 `[batch, length]`, 0 = padding."""

    def token_ids(self, text: Any, max_tokens: int) -> Any:
        """Decoder targets, int32 `[batch, max_tokens]`, 0 = padding."""


@dataclass(frozen=True)
class PreparedColumn:
    """One array of a prepared data set.

    Attributes:
        kind: "ids": a text as encoder ids, int32 `[rows, length]`; "token_ids": a text as decoder
            targets, int32 `[rows, max_tokens]`; "label": int32 `[rows]`; "vector": float32
            `[rows, dim]`.
        max_tokens: Tokens of a text beyond this many are cut; texts need it, the others must not
            have it.
        key: The key of the example that holds the value; None: the array's own name.

    Raises:
        ValueError: The kind is unknown, or `max_tokens` does not fit it.
    """

    kind: ColumnKind
    max_tokens: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in _DTYPES:
            raise ValueError(f"kind: expected one of {[*_DTYPES]}, received {self.kind!r}.")
        if (self.kind in _TEXT_KINDS) != (self.max_tokens is not None):
            needs = "needs" if self.kind in _TEXT_KINDS else "must not have"
            raise ValueError(f"A column of kind {self.kind!r} {needs} max_tokens.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens: expected 1 or more, received {self.max_tokens}.")

    @property
    def dtype(self) -> np.dtype:
        """The array's type on disk, little-endian."""
        return _DTYPES[self.kind]

    def array(self, values: list[Any], vectorizer: Vectorizer) -> np.ndarray:
        """Values of some rows as an array `[rows, …]`.

        Raises:
            ValueError: A value is not of the column's kind.
        """
        if self.kind in _TEXT_KINDS:
            return self._ids(values, vectorizer)
        if self.kind == "label":
            return _labels(values)
        return _vectors(values)

    def _ids(self, values: list[Any], vectorizer: Vectorizer) -> np.ndarray:
        for value in values:
            if not isinstance(value, str):
                raise ValueError(f"expected text, received {type(value).__name__}: {value!r:.80}")
        to_ids: Callable[..., Any] = (
            vectorizer.padded if self.kind == "ids" else vectorizer.token_ids
        )
        return np.asarray(to_ids(values, self.max_tokens)).astype(_INTEGERS, copy=False)


def _labels(values: list[Any]) -> np.ndarray:
    limits = np.iinfo(_INTEGERS)
    for value in values:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not limits.min <= value <= limits.max:
            raise ValueError(f"expected an int32 label, received {value!r:.80}")
    return np.array(values, dtype=_INTEGERS)


def _vectors(values: list[Any]) -> np.ndarray:
    vectors = [np.asarray(value) for value in values]
    first = vectors[0]
    for vector in vectors:
        if vector.ndim != 1 or vector.dtype.kind not in "fiu" or vector.shape != first.shape:
            raise ValueError(
                f"expected a numeric vector of shape {first.shape[:1]}, "
                f"received {vector.dtype} of shape {vector.shape}"
            )
    array = np.stack(vectors).astype(_FLOATS)
    if not np.isfinite(array).all():
        raise ValueError("expected a vector of finite numbers, received NaN or infinity")
    return array
