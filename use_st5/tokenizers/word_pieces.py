"""The pieces of words that a vocabulary lacks, inside the TensorFlow graph."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from use_st5.tokenizers.ngram_vocabulary import PIECE_MARK

_UNKNOWN = -1
# The most letters of a piece, and the most pieces of a word that count: more tell nothing more.
_PIECE_LETTERS = 16
_MOST_PIECES = 8


class WordPieces:
    """Cuts a token that is unknown into pieces.

    It is cut at its punctuation ("cookie-cutter", "26,000"); a part that is still unknown is cut
    into the longest known pieces from left to right, as WordPiece does (Wu et al. 2016, arXiv
    1609.08144): a word of the vocabulary first, then pieces marked "##". If no piece fits, the rest
    of the part has the id of its hash bucket.

    Args:
        table: Term → id, or -1.
        buckets: Gives the int64 ids of the hash buckets of words.
    """

    def __init__(
        self, table: tf.lookup.StaticHashTable, buckets: Callable[[tf.Tensor], tf.Tensor]
    ) -> None:
        self._table = table
        self._buckets = buckets

    def ids(self, tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of tokens, one or more for each, and the place of each id's token; both int64."""
        parts, owners = self._parts(tokens)
        part_ids = self._table.lookup(parts)
        unknown = tf.where(part_ids == _UNKNOWN)
        pieces = self._pieces(tf.gather_nd(parts, unknown))
        # One row per part, one column per piece, 0 if there is no piece.
        piece_ids = tf.pad(part_ids[:, None], [[0, 0], [0, _MOST_PIECES - 1]])
        piece_ids = tf.tensor_scatter_nd_update(piece_ids, unknown, pieces)
        places = tf.where(piece_ids > 0)
        return tf.gather_nd(piece_ids, places), tf.gather(owners, places[:, 0])

    def _parts(self, tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Cuts unknown tokens at punctuation; returns all parts, and the token of each part."""
        cut = tf.strings.regex_replace(tokens, r"([^\pL\pM\pN])", r" \1 ")
        spaced = tf.where(self._table.lookup(tokens) == _UNKNOWN, cut, tokens)
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
        beginning_ids = self._table.lookup(tf.strings.join([mark, beginnings]))
        beginning_ids = tf.reshape(beginning_ids, [-1, _PIECE_LETTERS])
        fits = (beginning_ids != _UNKNOWN) & (sizes <= letters[:, None])
        size = tf.reduce_max(tf.where(fits, sizes, 0), axis=1)
        best_ids = tf.gather(beginning_ids, tf.maximum(size - 1, 0), axis=1, batch_dims=1)
        none = tf.zeros_like(best_ids)
        ids = tf.where(size > 0, best_ids, tf.where(letters > 0, self._buckets(rest), none))
        remainder = tf.strings.substr(rest, tf.minimum(size, letters), letters, unit="UTF8_CHAR")
        return ids, tf.where(size > 0, remainder, "")
