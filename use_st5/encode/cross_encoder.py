"""Scores for pairs of texts, with a cross-encoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

import use_st5
from use_st5.encode.sentences import (
    check_batch_size,
    check_pairs,
    length_sorted_batches,
    one_or_many,
)
from use_st5.encode.token_limit import TokenLimit
from use_st5.hub.model_manifest import SAVED_MODEL_FILE, ModelManifest
from use_st5.hub.model_names import local_source, short_name
from use_st5.io.progress import with_progress

if TYPE_CHECKING:
    from use_st5 import TrainableEncoder

# First texts, second texts → float32 logits `[batch]`.
PairScorer = Callable[[list[str], list[str]], np.ndarray]


class Ranked(NamedTuple):
    """A ranked text.

    Attributes:
        place: Its index in the input, from 0.
        score: Its score for the query, in 0 … 1.
        text: The text.
    """

    place: int
    score: float
    text: str


class CrossEncoder:
    """Scores pairs of texts in 0 … 1; the model reads both texts together.

    It is usually more accurate than a sentence encoder, but slower, because it computes each pair
    separately. Use it to re-rank the results of a sentence encoder. `CrossEncoder.load` loads it
    from a folder. `CrossEncoder.of` makes it from a `TrainableEncoder`.

    Args:
        score: First texts, second texts → float32 logits `[batch]`.
        name: Its name.
        limit: The token limit of a pair; None: no limit.

    Examples:
        >>> cross_encoder = CrossEncoder.load("my_cross_encoder")
        >>> cross_encoder.predict([("How old are you?", "What is your age?")])
        >>> cross_encoder.rank("How old are you?", ["I am six.", "What is your age?"])[0].text
    """

    def __init__(self, score: PairScorer, *, name: str, limit: TokenLimit | None = None) -> None:
        self._score = score
        self._limit = limit
        self.name = name

    @property
    def max_length(self) -> int | None:
        """Maximum number of tokens of a pair; None: no limit, or an unknown limit."""
        return self._limit.max_length if self._limit else None

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Loads a cross-encoder.

        Args:
            folder: A SavedModel that `TrainableEncoder.export` wrote, or a checkpoint of Hugging
                Face or sentence-transformers that classifies pairs and has one label; or the name
                of one on a hub, such as "hf://ORG/NAME".
        """
        path, name = local_source(folder), short_name(folder)
        if not path.joinpath(SAVED_MODEL_FILE).is_file():
            return cls.of(use_st5.TrainableEncoder.load(path), name=name)
        import tensorflow as tf

        from use_st5.export.loading import check_finite_weights, load_saved_model

        manifest = ModelManifest.read(path)
        if manifest is None or manifest.texts != 2:
            remedy = "Load a sentence encoder with use_st5.load."
            raise ValueError(f"{path}: no cross-encoder. {remedy}")
        manifest.check_sizes(path)
        loaded = load_saved_model(path)
        check_finite_weights(loaded, path)

        def score(first: list[str], second: list[str]) -> np.ndarray:
            texts: dict[str, Any] = {"first": tf.constant(first), "second": tf.constant(second)}
            return loaded.signatures["serving_default"](**texts)["logits"].numpy()

        return cls(score, name=name, limit=TokenLimit.of_model(loaded, manifest))

    @classmethod
    def of(cls, encoder: TrainableEncoder, *, name: str | None = None) -> Self:
        """Makes a cross-encoder of a `TrainableEncoder`; later training changes its scores.

        Args:
            encoder: An encoder of a family that reads two texts together.
            name: Its name; None: the encoder's name.
        """
        name = name or encoder.name or "cross-encoder"
        if encoder.inputs != 2:
            raise ValueError(f"{name}: expected a cross-encoder, found a sentence encoder.")

        def score(first: list[str], second: list[str]) -> np.ndarray:
            return encoder.encode(zip(first, second, strict=True), batch_size=len(first))[:, 0]

        counts = getattr(encoder.tokenizer, "pair_token_counts", None)
        return cls(score, name=name, limit=TokenLimit(encoder.max_length, counts))

    def predict(
        self,
        pairs: Iterable[Sequence[str | bytes]],
        *,
        batch_size: int = 128,
        show_progress: bool | None = None,
        logits: bool = False,
    ) -> np.ndarray:
        """Scores pairs of texts.

        Args:
            pairs: Any number of pairs of strings. Bytes are decoded as UTF-8.
            batch_size: Maximum number of pairs in a batch.
            show_progress: Whether to show a progress bar on standard error. None: only for long
                inputs in a terminal.
            logits: Whether to return the values before `σ`, which separate high scores better.

        Returns:
            float32 `[n]`, in 0 … 1 unless `logits`.
        """
        check_batch_size(batch_size)
        first, second = check_pairs(pairs)
        rows = list(map("".join, zip(first, second, strict=True)))
        numbers = np.empty(len(rows), np.float32)
        batches = length_sorted_batches(rows, sentences=batch_size)
        for batch in with_progress(batches, len(rows), show_progress):
            numbers[batch] = self._score([first[i] for i in batch], [second[i] for i in batch])
        return numbers if logits else sigmoid(numbers)

    def truncated(self, pairs: Iterable[Sequence[str | bytes]]) -> np.ndarray:
        """Returns the indices of the pairs that `predict` cuts.

        Args:
            pairs: As for `predict`.

        Returns:
            int64, in ascending order. Empty for models from older versions, which cannot count
            tokens.
        """
        first, second = check_pairs(pairs)
        return self._limit.longer(first, second) if self._limit else np.zeros(0, np.int64)

    def rank(
        self,
        query: str | bytes,
        texts: Iterable[str | bytes],
        *,
        top_k: int | None = None,
        batch_size: int = 128,
    ) -> list[Ranked]:
        """Sorts texts by their scores for a query, highest first; equal scores keep their order.

        Args:
            query: A string.
            texts: Any number of strings.
            top_k: Number of texts to return; None: all.
            batch_size: Maximum number of pairs in a batch.
        """
        if top_k is not None and top_k < 1:
            raise ValueError(f"top_k: expected 1 or more, received {top_k}.")
        (query_text,), candidates = one_or_many(query)[0], one_or_many(texts)[0]
        logits = self.predict(
            [(query_text, text) for text in candidates], batch_size=batch_size, logits=True
        )
        scores = sigmoid(logits)
        order = np.argsort(-logits, kind="stable")[:top_k]
        return [Ranked(int(i), float(scores[i]), candidates[i]) for i in order]


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """`σ`, without overflow."""
    return np.exp(-np.logaddexp(np.float32(0), -logits))
