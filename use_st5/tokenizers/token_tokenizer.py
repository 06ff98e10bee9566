"""Tokenizers of a USE Transformer: one or more ids for a token, inside the TensorFlow graph."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import ClassVar, Self

import tensorflow as tf

from use_st5.tokenizers.ngram_tokenizer import (
    VOCABULARY_ASSET,
    NGramTokenizer,
    check_max_tokens,
    pad_rows,
)
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary


class TokenTokenizer(tf.Module, abc.ABC):
    """Maps sentences to ids of their tokens: the tokenizer of a USE Transformer.

    The tokens and the asset are those of `NGramTokenizer`, and so is the memory that long texts
    take. A subclass decides which ids a token gets.

    Args:
        vocabulary: The terms and their ids; it holds no bi-grams.
    """

    def __init__(self, vocabulary: NGramVocabulary) -> None:
        super().__init__()
        vocabulary.check_unigrams_only()
        self.vocabulary = vocabulary
        self._ngrams = NGramTokenizer(vocabulary)

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the vocabulary in its assets."""
        return cls(NGramVocabulary.load(folder / VOCABULARY_ASSET))

    @abc.abstractmethod
    def ids(self, tokens: tf.Tensor, positions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """At least one id for each token of all texts, and its row; both int32 `[ids]`."""

    def flat(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of all texts, one text after the other, and the text of each: int32 `[ids]`."""
        return self.ids(*self._ngrams.split(text))

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """Returns rows as long as the longest one; `max_tokens` counts ids."""
        check_max_tokens(max_tokens)
        ids, rows = self.flat(text) if max_tokens is None else self._first(text, max_tokens)
        padded = pad_rows(ids, rows, batch=tf.shape(text)[0], length=None)
        return padded if max_tokens is None else padded[:, :max_tokens]

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids of `padded` in rows of one length."""
        check_max_tokens(max_tokens)
        ids, rows = self._first(text, max_tokens)
        return pad_rows(ids, rows, batch=tf.shape(text)[0], length=max_tokens)

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The number of ids of each uncut text."""
        return self._ngrams.counts(text, lambda *split: self.ids(*split)[1])

    def _first(self, text: tf.Tensor, max_tokens: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the result of `flat` for the first `max_tokens` tokens of each text."""
        return self.ids(*self._ngrams.first(text, max_tokens))


class UnigramTokenizer(TokenTokenizer):
    """Maps each token of a sentence to one id; an unknown token has the id of its hash bucket.

    Args:
        vocabulary: The terms and their ids; it holds no bi-grams.
    """

    kind: ClassVar[str] = "unigrams"

    def ids(self, tokens: tf.Tensor, positions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The id of each token, and its row."""
        return tf.cast(self._ngrams.ids(tokens), tf.int32), tf.cast(positions[:, 0], tf.int32)


class PieceTokenizer(TokenTokenizer):
    """Maps sentences to ids of tokens; a token that is unknown becomes several.

    `use_st5.tokenizers.word_pieces` says how.

    Args:
        vocabulary: The words, including the marked pieces, and their ids; no bi-grams.
    """

    kind: ClassVar[str] = "pieces"

    def ids(self, tokens: tf.Tensor, positions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of tokens, one or more for each, and the row of each id."""
        ids, owners = self._ngrams.word_pieces.ids(tokens)
        return tf.cast(ids, tf.int32), tf.cast(tf.gather(positions[:, 0], owners), tf.int32)
