"""Pairs of texts as ids, and their scores by a bi- or a cross-encoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import keras
import numpy as np

from use_st5.training.array_data import row_lengths

if TYPE_CHECKING:  # It needs TensorFlow, and scoring under JAX does not.
    from use_st5.tokenizers.tokenizer import Tokenizer

Kind = Literal["bi", "cross"]
# Ids `[batch, length]` → vectors `[batch, dimension]`.
Embed = Callable[[np.ndarray], Any]

_BATCH = 256
# Widths of batches, which hold texts of similar lengths; JAX compiles a program for each width.
_WIDTHS = (8, 16, 24, 32, 48, 64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairIds:
    """Pairs of texts as ids, one row for each pair.

    Attributes:
        first: int32 `[pairs, length]`.
        second: int32 `[pairs, length]`.
        joined: int32 `[pairs, length]`, both texts in a row.
        turned: int32 `[pairs, length]`, both texts in a row, the second before the first.
    """

    first: np.ndarray
    second: np.ndarray
    joined: np.ndarray
    turned: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of_texts(
        cls,
        tokenizer: Tokenizer,
        first: Sequence[str],
        second: Sequence[str],
        *,
        max_tokens: int,
        max_pair_tokens: int,
        pair_tokenizer: Tokenizer | None = None,
    ) -> Self:
        """The ids of texts.

        Args:
            tokenizer: Makes the ids of single texts.
            first: The first texts.
            second: The second texts.
            max_tokens: Largest number of tokens of a text; the rest is cut.
            max_pair_tokens: Largest number of ids of both texts together.
            pair_tokenizer: Makes the ids of pairs, if the cross-encoder has another tokenizer than
                the bi-encoder; None: `tokenizer`. If it cannot join two texts, `joined` and
                `turned` have no columns, and only models of single texts can read the pairs.
        """
        first_ids, second_ids = (
            np.asarray(tokenizer.padded(each, max_tokens)) for each in (first, second)
        )
        join = getattr(pair_tokenizer or tokenizer, "padded_pairs", None)
        if join is None:
            empty = np.zeros((len(first), 0), np.int32)
            return cls(first=first_ids, second=second_ids, joined=empty, turned=empty)
        joined, turned = (
            np.asarray(join(*each, max_pair_tokens)) for each in ((first, second), (second, first))
        )
        return cls(first=first_ids, second=second_ids, joined=joined, turned=turned)


def scores(embed: Embed, kind: Kind, pairs: PairIds) -> np.ndarray:
    """The scores of pairs: the cosine of a bi-encoder, `σ(logit)` of a cross-encoder.

    Args:
        embed: The model, as `inference` returns it.
        kind: "bi" or "cross".
        pairs: The pairs.

    Returns:
        float32 `[pairs]`.
    """
    if kind == "cross":
        return np.exp(-np.logaddexp(np.float32(0), -_vectors(embed, pairs.joined)[:, 0]))
    # Many texts are in several pairs.
    texts, places = np.unique(stacked(pairs.first, pairs.second), axis=0, return_inverse=True)
    u, v = np.split(_vectors(embed, texts)[places.reshape(-1)], 2)
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    return (u * v).sum(axis=1) / np.maximum(lengths, 1e-12)


def stacked(*ids: np.ndarray) -> np.ndarray:
    """Joins the rows of several arrays of ids, padded to the widest."""
    width = max(each.shape[1] for each in ids)
    return np.concatenate([np.pad(each, [(0, 0), (0, width - each.shape[1])]) for each in ids])


def widths(longest: int) -> tuple[int, ...]:
    """The widths of batches of similar lengths, up to one that holds the longest row."""
    narrow_widths = [width for width in _WIDTHS if width < longest]
    return (*narrow_widths, next((width for width in _WIDTHS if width >= longest), longest))


def _vectors(embed: Embed, ids: np.ndarray) -> np.ndarray:
    """A model's outputs for rows of ids, in batches of similar lengths: float32 `[rows, width]`."""
    lengths = row_lengths(ids)
    order = np.argsort(lengths, kind="stable")
    parts = []
    for start in range(0, len(order), _BATCH):
        rows = order[start : start + _BATCH]
        width = widths(int(lengths[rows].max()))[-1]
        parts.append(keras.ops.convert_to_numpy(embed(ids[rows, :width])))
    return np.concatenate(parts)[np.argsort(order)]
