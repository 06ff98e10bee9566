"""Tokenizers of the USE models: one or more ids for a token, inside the TensorFlow graph."""

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
from use_st5.tokenizers.ngram_vocabulary import PIECE_MARK, NGramVocabulary


class TokenTokenizer(tf.Module, abc.ABC):
    """Maps sentences to ids of their tokens: the tokenizer of a USE Transformer or USE-DAN.

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

    def pieces(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Cuts texts into the pieces that `block` reads, as `NGramTokenizer.pieces` does."""
        return self._ngrams.pieces(text)

    def block(self, pieces: tf.Tensor, rows: tf.Tensor, *last: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The ids of some successive pieces, and the text of each; `last` as it is given."""
        positions, tokens, _ = tf.raw_ops.StringSplitV2(input=pieces, sep="")
        ids, places = self.ids(tokens, positions)
        return ids, tf.gather(rows, places), *last

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


_UNKNOWN = -1
# The most letters of a piece, and the most pieces of a word that count: more tell nothing more.
_PIECE_LETTERS = 16
_MOST_PIECES = 8


class PieceTokenizer(TokenTokenizer):
    """Maps sentences to ids of tokens; a token that is unknown becomes several.

    An unknown token is cut at its punctuation ("cookie-cutter", "26,000"); a part that is still
    unknown is cut into the longest known pieces from left to right, as WordPiece does (Wu et al.
    2016, arXiv 1609.08144): a word of the vocabulary first, then pieces marked "##". If no piece
    fits, the rest of the part has the id of its hash bucket.

    Args:
        vocabulary: The words, including the marked pieces, and their ids; no bi-grams.
    """

    kind: ClassVar[str] = "pieces"

    def ids(self, tokens: tf.Tensor, positions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of tokens, one or more for each, and the row of each id."""
        parts, owners = self._parts(tokens)
        part_ids = self._ngrams.table.lookup(parts)
        unknown = tf.where(part_ids == _UNKNOWN)
        pieces = self._pieces(tf.gather_nd(parts, unknown))
        # One row per part, one column per piece, 0 if there is no piece.
        piece_ids = tf.pad(part_ids[:, None], [[0, 0], [0, _MOST_PIECES - 1]])
        piece_ids = tf.tensor_scatter_nd_update(piece_ids, unknown, pieces)
        places = tf.where(piece_ids > 0)
        rows = tf.gather(positions[:, 0], tf.gather(owners, places[:, 0]))
        return tf.cast(tf.gather_nd(piece_ids, places), tf.int32), tf.cast(rows, tf.int32)

    def _parts(self, tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Cuts unknown tokens at punctuation; returns all parts, and the token of each part."""
        cut = tf.strings.regex_replace(tokens, r"([^\pL\pM\pN])", r" \1 ")
        spaced = tf.where(self._ngrams.table.lookup(tokens) == _UNKNOWN, cut, tokens)
        positions, parts, _ = tf.raw_ops.StringSplitV2(input=spaced, sep="")
        return parts, positions[:, 0]

    def _pieces(self, words: tf.Tensor) -> tf.Tensor:
        """The ids of unknown words' pieces, int64 `[words, _MOST_PIECES]`, 0 = none."""

        def more(step: tf.Tensor, rest: tf.Tensor, _found: tf.Tensor) -> tf.Tensor:
            return (step < _MOST_PIECES) & tf.reduce_any(tf.strings.length(rest) > 0)

        def cut(step: tf.Tensor, rest: tf.Tensor, found: tf.Tensor) -> tuple[tf.Tensor, ...]:
            ids, rest = self._longest(rest, tf.where(step > 0, PIECE_MARK, ""))
            place = tf.one_hot(step, _MOST_PIECES, dtype=tf.int64)
            return step + 1, rest, found + ids[:, None] * place

        found = tf.zeros([tf.size(words), _MOST_PIECES], tf.int64)
        # A loop in the graph, not in Python: the exported file holds its body once.
        return tf.while_loop(more, cut, (tf.constant(0), words, found))[-1]

    def _longest(self, rest: tf.Tensor, mark: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The id of each text's longest known beginning (0 for an empty text), and the rest."""
        letters = tf.strings.length(rest, unit="UTF8_CHAR")
        # All beginnings are looked up at once, so no more letters of a long word are repeated.
        sizes = tf.range(1, _PIECE_LETTERS + 1)
        longest = tf.strings.substr(rest, 0, _PIECE_LETTERS, unit="UTF8_CHAR")
        beginnings = tf.strings.substr(
            tf.repeat(longest, _PIECE_LETTERS),
            tf.zeros([tf.size(rest) * _PIECE_LETTERS], tf.int32),
            tf.tile(sizes, [tf.size(rest)]),
            unit="UTF8_CHAR",
        )
        beginning_ids = self._ngrams.table.lookup(tf.strings.join([mark, beginnings]))
        beginning_ids = tf.reshape(beginning_ids, [-1, _PIECE_LETTERS])
        fits = (beginning_ids != _UNKNOWN) & (sizes <= letters[:, None])
        size = tf.reduce_max(tf.where(fits, sizes, 0), axis=1)
        best_ids = tf.gather(beginning_ids, tf.maximum(size - 1, 0), axis=1, batch_dims=1)
        none = tf.zeros_like(best_ids)
        ids = tf.where(size > 0, best_ids, tf.where(letters > 0, self._ngrams.buckets(rest), none))
        remainder = tf.strings.substr(rest, tf.minimum(size, letters), letters, unit="UTF8_CHAR")
        return ids, tf.where(size > 0, remainder, "")
