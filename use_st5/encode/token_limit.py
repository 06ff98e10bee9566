"""The length limit of a model in tokens, and the messages about longer texts."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from use_st5.encode.sentences import length_sorted_batches
from use_st5.encode.similarity import unit_rows

if TYPE_CHECKING:
    from use_st5.hub.model_manifest import ModelManifest

OnTruncation = Literal["warn", "ignore", "error", "split", "keep_end"]

# Tokens are counted for at most this many texts and characters at a time.
_TEXTS, _CHARACTERS = 4096, 1_000_000
# A tokenizer adds at most two tokens to a text, such as [CLS] and [SEP].
_ADDED_TOKENS = 2
# Windows are cut between words; a longer word counts as several.
_WORD = re.compile(r"\S{1,30}")


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
        counts = self._counted(*([column[i] for i in indices] for column in texts))
        return indices[counts > self.max_length]

    def _counted(self, *texts: Sequence[str]) -> np.ndarray:
        rows = list(map("".join, zip(*texts, strict=True)))
        counts = np.zeros(len(rows), np.int64)
        for batch in length_sorted_batches(rows, sentences=_TEXTS, characters=_CHARACTERS):
            inputs: list[Any] = [[column[i] for i in batch] for column in texts]
            if self._takes_tensors:
                import tensorflow as tf  # Models of other backends count without it.

                inputs = [tf.constant(column, tf.string) for column in inputs]
            counts[batch] = np.asarray(self._token_counts(*inputs))
        return counts

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
        advice = 'Pass on_truncation="split", "ignore" or "error".'
        warnings.warn(f"{message}; the rest is not read. {advice}", stacklevel=3)

    def split(
        self, texts: Sequence[str], prompt: str, *, last: bool = False
    ) -> tuple[list[str], np.ndarray]:
        """Cuts the texts that are too long with the prompt before them into windows.

        With `last`, only the last window of each text is kept.

        Returns:
            The texts and windows with the prompt before each, and the index of each one's text.
        """
        if not self._known:
            name = "keep_end" if last else "split"
            raise ValueError(f'on_truncation="{name}": this SavedModel cannot count its tokens.')
        rows, owners = [prompt + text for text in texts], np.arange(len(texts))
        windows = {int(i): self._windows(texts[i], prompt, last) for i in self.longer(rows)}
        pieces = [windows.get(i, [row]) for i, row in enumerate(rows)]
        return [row for some in pieces for row in some], np.repeat(owners, [*map(len, pieces)])

    def _windows(self, text: str, prompt: str, last_only: bool) -> list[str]:
        """Windows of whole words that fill the limit; at least an eighth of one is in the next."""
        one, two = self._counted(["a", "a a"])
        limit, added = self.max_length or 0, 2 * one - two  # [CLS] and the like
        room = int(limit - (self._counted([prompt])[0] if prompt else added))
        if room < 1:
            raise ValueError(f"The prompt alone has {limit - room} of {limit} tokens.")
        places = [match.span() for match in _WORD.finditer(text)] or [(0, len(text))]
        words, inverse = np.unique([text[a:b] for a, b in places], return_inverse=True)
        sizes = np.maximum(self._counted(words.tolist()) - added, 0)[inverse]
        ends = np.cumsum(sizes)
        starts, first, last, windows = ends - sizes, 0, 0, []
        while last < len(places):
            last = max(first + 1, int(np.searchsorted(ends, starts[first] + room, side="right")))
            windows.append(text[places[first][0] : places[last - 1][1]])
            # The last window is as full as the others.
            following = min(starts[first] + room - room // 8, ends[-1] - room)
            first = min(last, int(np.searchsorted(starts, following)))
        windows = windows[-1:] if last_only else windows
        fitting: list[str] = []
        while windows:  # Between other words a word may have more tokens than alone.
            rows = [prompt + window for window in windows]
            fits = (self._counted(rows) <= limit) | (np.array([*map(len, windows)]) < 2)
            fitting += [row for row, fit in zip(rows, fits, strict=True) if fit]
            wide = [window for window, fit in zip(windows, fits, strict=True) if not fit]
            windows = [half for w in wide for half in (w[: len(w) // 2], w[len(w) // 2 :])]
        return fitting[-1:] if last_only else fitting


def window_means(vectors: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Vectors `[texts, dim]` of texts, of those of their windows `[windows, dim]`.

    A text's vector has the direction of the mean, and the mean length of its windows' vectors.
    `owners` `[windows]` are the indices of the texts, ascending.
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    counts = np.diff(starts, append=len(owners))
    means = unit_rows(np.add.reduceat(vectors, starts, axis=0, dtype=np.float64))
    lengths = np.add.reduceat(np.linalg.norm(vectors, axis=1), starts) / counts
    means = (means * lengths[:, None]).astype(np.float32)
    means[counts == 1] = vectors[starts[counts == 1]]
    return means


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
