"""The length limit of a model in tokens, and the messages about longer texts."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from use_st5.encode.sentences import length_sorted_batches

if TYPE_CHECKING:
    from use_st5.hub.model_manifest import ModelManifest

OnTruncation = Literal["warn", "ignore", "error"]

# Tokens are counted for at most this many texts and characters at a time.
_TEXTS, _CHARACTERS = 4096, 1_000_000
# A tokenizer adds at most two tokens to a text, such as [CLS] and [SEP].
_ADDED_TOKENS = 2


class TokenLimit:
    """Finds the texts that a model cuts.

    Texts that are too short to exceed the limit are not tokenized here.

    Args:
        max_length: The most tokens of a text or pair that are read; None: no or an unknown limit.
        token_counts: Strings `[batch]` (for pairs two such arguments) → int32 `[batch]`; None if
            the model cannot count tokens.
        known: Whether it is known which texts are cut.
        takes_tensors: Whether `token_counts` takes string tensors, or lists.
    """

    def __init__(
        self,
        max_length: int | None,
        token_counts: Callable[..., Any] | None,
        *,
        known: bool = True,
        takes_tensors: bool = True,
    ) -> None:
        self.max_length = max_length
        self._token_counts: Any = token_counts
        self._takes_tensors = takes_tensors
        self._known = known and (max_length is None or token_counts is not None)

    @classmethod
    def of_model(cls, model: Any, manifest: ModelManifest | None) -> Self:
        """Returns the limit of a loaded SavedModel; its manifest is None if it is foreign."""
        limit = manifest.max_length if manifest else None
        return cls(limit, getattr(model, "token_counts", None), known=manifest is not None)

    def longer(self, *texts: Sequence[str]) -> np.ndarray:
        """Returns the indices of the texts that are cut, ascending int64; none if this is unknown.

        For pairs, `texts` are the first texts and the second texts.
        """
        if self.max_length is None or not self._known:
            return np.zeros(0, np.int64)
        short = self.max_length - _ADDED_TOKENS * len(texts)
        rows = list(map("".join, zip(*texts, strict=True)))
        indices = np.array([i for i, row in enumerate(rows) if most_tokens(row) > short], np.int64)
        candidates = [rows[i] for i in indices]
        counts = np.zeros(len(candidates), np.int32)
        for batch in length_sorted_batches(candidates, sentences=_TEXTS, characters=_CHARACTERS):
            inputs: list[Any] = [[column[i] for i in indices[batch]] for column in texts]
            if self._takes_tensors:
                import tensorflow as tf  # Models of other backends count without it.

                inputs = [tf.constant(column, tf.string) for column in inputs]
            counts[batch] = np.asarray(self._token_counts(*inputs))
        return indices[counts > self.max_length]

    def report(self, texts: Sequence[str], on_truncation: OnTruncation) -> None:
        """Reports before any work which texts will be cut; for `SentenceEncoder.encode`."""
        if on_truncation == "ignore":
            return
        if on_truncation == "error" and not self._known:
            raise ValueError('on_truncation="error": this SavedModel cannot count its tokens.')
        indices = self.longer(texts)
        if self.max_length is None or not len(indices):
            return
        message = truncation_message(len(indices), len(texts), self.max_length)
        if on_truncation == "error":
            raise ValueError(f"{message}, the first at index {indices[0]}. Shorten or split them.")
        advice = 'Split them, or pass on_truncation="ignore" or "error".'
        warnings.warn(f"{message}; the rest is not read. {advice}", stacklevel=3)


def most_tokens(text: str) -> int:
    """Returns a number of tokens that no tokenizer exceeds, not counting the tokens that it adds.

    A token has at least one character of the normalized text, or one byte of a character that the
    vocabulary lacks. Compatibility decomposition gives the longest normalized text.
    """
    if text.isascii():
        return len(text)
    return len(unicodedata.normalize("NFKD", text).encode("utf-8", "replace"))


def truncation_message(count: int, total: int, max_length: int, *, what: str = "texts") -> str:
    """The number of texts that are longer than the model's limit, as the start of a sentence."""
    verb = "is" if count == 1 else "are"
    return f"{count:,} of {total:,} {what} {verb} longer than {max_length:,} tokens"
