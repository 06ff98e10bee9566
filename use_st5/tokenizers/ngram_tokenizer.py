"""Sentences to the ids of their unigrams and bi-grams, inside the TensorFlow graph."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

import tensorflow as tf

from use_st5.tokenizers.long_texts import are_long, cut, fold
from use_st5.tokenizers.ngram_vocabulary import EMPTY_TERM, NGramVocabulary
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer
from use_st5.tokenizers.word_pieces import WordPieces

_UNKNOWN = -1
VOCABULARY_ASSET = "vocabulary.txt"


class NGramTokenizer(tf.Module):
    """Maps sentences to ids of unigrams and bi-grams, with core TensorFlow ops only.

    One implementation serves the data pipeline (`dataset.batch(n).map(tokenizer.padded)`) and
    the exported graph. The ids of a sentence alternate: its first token, the pair of its first
    and second token, its second token, and so on. An unknown token has the id of its hash
    bucket, or the ids of its pieces if the vocabulary has pieces (`WordPieces`); an unknown pair
    has the id of its bucket, or is left out if the vocabulary has no buckets for pairs. A text
    without any token has exactly one id, 1.

    The vocabulary is a tracked asset: a SavedModel of a module that holds the tokenizer as an
    attribute carries it as `assets/vocabulary.txt`.

    Memory: a batch of long texts is read a block at a time (`use_st5.tokenizers.long_texts`)
    if the result is bounded: by `padded` and `token_ids` with `max_tokens`, by `token_counts`, and
    by `block`.

    Args:
        vocabulary: the terms and their ids.
    """

    kind: ClassVar[str] = "ngrams"

    def __init__(self, vocabulary: NGramVocabulary) -> None:
        super().__init__(name="ngram_tokenizer")
        self.vocabulary = vocabulary
        self._tokenizer = PTBTokenizer()
        # The asset must exist when a SavedModel is written: it lives as long as this object.
        folder = tempfile.mkdtemp(prefix="use_st5_")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder, VOCABULARY_ASSET)
        vocabulary.save(path)
        initializer = tf.lookup.TextFileInitializer(
            str(path),
            key_dtype=tf.string,
            key_index=tf.lookup.TextFileIndex.WHOLE_LINE,
            value_dtype=tf.int64,
            value_index=tf.lookup.TextFileIndex.LINE_NUMBER,
            vocab_size=vocabulary.unigram_bucket_id,
        )
        self.table = tf.lookup.StaticHashTable(initializer, default_value=_UNKNOWN)
        self.word_pieces = WordPieces(self.table, self.buckets)

    @classmethod
    def from_assets(cls, folder: Path) -> Self:
        """Builds the tokenizer of an exported model from the vocabulary in its assets."""
        return cls(NGramVocabulary.load(folder / VOCABULARY_ASSET))

    def flat(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the ids of all texts, one text after the other.

        Args:
            text: string `[batch]`.

        Returns:
            `(ids, rows)`, both int32 `[terms]`: the ids, and the text that each belongs to.
            `rows` never decreases and names every text at least once.
        """
        return self._terms(*self.split(text))

    def pieces(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Cuts texts into the pieces that `block` reads.

        Args:
            text: string `[batch]`.

        Returns:
            `(pieces, rows)`: tokens with spaces between them, string `[pieces]`, and the text that
            each piece belongs to, int32 `[pieces]`.
        """
        pieces, positions = self._cut(text)
        return pieces, tf.cast(positions[:, 0], tf.int32)

    def block(
        self, pieces: tf.Tensor, rows: tf.Tensor, last: tf.Tensor, last_row: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """The ids of some successive pieces; all blocks together give the ids of `flat`.

        Args:
            pieces: string `[pieces]`.
            rows: The text that each piece belongs to, int32 `[pieces]`.
            last: The last token before these pieces, a string; any string for the first block.
            last_row: The text of the last token, int32; -1 for the first block.

        Returns:
            `(ids, rows, last, last_row)`: the first two as `flat` gives them, the others for the
            next block.
        """
        positions, tokens, _ = tf.raw_ops.StringSplitV2(input=pieces, sep="")
        rows = tf.gather(rows, positions[:, 0])
        before = tf.concat([[last], tokens], axis=0)
        rows_before = tf.concat([[last_row], rows], axis=0)
        ids, owners = self._ids(tokens, before[:-1], rows_before[:-1] == rows)
        return ids, tf.gather(rows, owners), before[-1], rows_before[-1]

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """Rows of `2 * max_tokens - 1` ids; without `max_tokens`, as long as the longest row."""
        check_max_tokens(max_tokens)
        tokens, positions = self.split(text) if max_tokens is None else self.first(text, max_tokens)
        ids, rows = self._terms(tokens, positions)
        length = None if max_tokens is None else 2 * max_tokens - 1
        return pad_rows(ids, rows, batch=tf.shape(text)[0], length=length)

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """The number of tokens of each text; a text without any counts as 1."""
        return self.counts(text, lambda _, positions: tf.cast(positions[:, 0], tf.int32))

    def counts(self, text: tf.Tensor, rows_of: Callable[..., tf.Tensor]) -> tf.Tensor:
        """How many ids each text has, int32 `[batch]`.

        Args:
            text: string `[batch]`.
            rows_of: Tokens and positions as `split` gives them → the row of each id, int32 `[ids]`.
        """
        batch = tf.shape(text)[0]

        def number(tokens: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
            rows = rows_of(tokens, positions)
            return tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, batch)

        def read(pieces: tf.Tensor, rows: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor]:
            return (total + number(*_split(pieces, rows)),)

        def of_long() -> tf.Tensor:
            pieces, positions = self._cut(text)
            return fold(read, (tf.zeros([batch], tf.int32),), pieces, positions[:, 0])[0]

        return tf.cond(are_long(text), of_long, lambda: number(*self.split(text)))

    def token_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The ids of each text's tokens without bi-grams, in rows of one length."""
        check_max_tokens(max_tokens)
        tokens, positions = self.first(text, max_tokens)
        ids, rows = (tf.cast(each, tf.int32) for each in (self.ids(tokens), positions[:, 0]))
        return pad_rows(ids, rows, batch=tf.shape(text)[0], length=max_tokens)

    def first(self, text: tf.Tensor, max_tokens: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the result of `split` with only the first `max_tokens` tokens of each text."""

        def of_long() -> tuple[tf.Tensor, tf.Tensor]:
            # There is at least one token in a piece.
            pieces, positions = self._cut(text)
            mask = positions[:, 1] < max_tokens
            return _split(tf.boolean_mask(pieces, mask), tf.boolean_mask(positions[:, 0], mask))

        tokens, positions = tf.cond(are_long(text), of_long, lambda: self.split(text))
        mask = positions[:, 1] < max_tokens
        return tf.boolean_mask(tokens, mask), tf.boolean_mask(positions, mask)

    def split(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns all tokens end to end, `[tokens]`, and row and column of each, `[tokens, 2]`."""
        # The same as tf.strings.split, without the ragged tensor around it.
        positions, tokens, _ = tf.raw_ops.StringSplitV2(input=self._spaced(text), sep="")
        return tokens, positions

    def buckets(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the int64 ids of the hash buckets that tokens fall into."""
        bucket = tf.strings.to_hash_bucket_fast(tokens, self.vocabulary.unigram_buckets)
        return self.vocabulary.unigram_bucket_id + bucket

    def ids(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the int64 ids of tokens; unknown ones get those of their buckets."""
        table_ids = self.table.lookup(tokens)
        return tf.where(table_ids == _UNKNOWN, self.buckets(tokens), table_ids)

    def _terms(self, tokens: tf.Tensor, positions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids and rows of the unigrams and bi-grams, int32 `[terms]` each."""
        # `tf.roll` puts the last token before the first: the first token of a text ends no pair.
        ids, owners = self._ids(tokens, tf.roll(tokens, 1, axis=0), positions[:, 1] > 0)
        return ids, tf.cast(tf.gather(positions[:, 0], owners), tf.int32)

    def _ids(
        self, tokens: tf.Tensor, before: tf.Tensor, paired: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """For each token the id of the pair that it ends, then its own; and each id's token."""
        pairs = tf.strings.join([before, tokens], separator=" ")
        pair_ids = self.table.lookup(pairs)
        if self.vocabulary.bigram_buckets:
            bucket = tf.strings.to_hash_bucket_fast(pairs, self.vocabulary.bigram_buckets)
            bucket_ids = self.vocabulary.bigram_bucket_id + bucket
            pair_ids = tf.where(pair_ids == _UNKNOWN, bucket_ids, pair_ids)
        pair_ids = tf.where(paired, pair_ids, _UNKNOWN)
        if self.vocabulary.has_pieces:
            own_ids, owners = self.word_pieces.ids(tokens)
            has_pair = tf.cast(pair_ids != _UNKNOWN, tf.int64)
            # Each id moves by the pairs up to its token, and each pair by the ids before its token.
            own_places = tf.range(tf.size(owners, tf.int64)) + tf.gather(
                tf.cumsum(has_pair), owners
            )
            pairs = tf.where(has_pair > 0)[:, 0]
            before_pairs = tf.searchsorted(owners, pairs, out_type=tf.int64)
            pair_places = before_pairs + tf.range(tf.size(pairs, tf.int64))
            places = tf.concat([own_places, pair_places], axis=0)[:, None]
            ids = tf.concat([own_ids, tf.gather(pair_ids, pairs)], axis=0)
            rows = tf.stack([ids, tf.concat([owners, pairs], axis=0)], axis=1)
            merged = tf.scatter_nd(places, rows, tf.shape(rows, tf.int64))
            return tf.cast(merged[:, 0], tf.int32), merged[:, 1]
        ids = tf.reshape(tf.stack([pair_ids, self.ids(tokens)], axis=1), [-1])
        places = tf.where(ids != _UNKNOWN)[:, 0]
        return tf.cast(tf.gather(ids, places), tf.int32), places // 2

    def _spaced(self, text: tf.Tensor) -> tf.Tensor:
        """The tokens of each text with spaces between; `EMPTY_TERM` if there are none."""
        return tf.strings.regex_replace(self._tokenizer.spaced(text), "^ *$", EMPTY_TERM)

    def _cut(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Pieces, and the text and the number of each, as `long_texts.cut` gives them."""
        lean = tf.strings.regex_replace(self._spaced(text), "  +", " ")
        return cut(lean, between="[^ ]")


def _split(pieces: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Tokens of successive pieces; row and column of each, from the first of these pieces on."""
    positions, tokens, _ = tf.raw_ops.StringSplitV2(input=pieces, sep="")
    rows = tf.gather(rows, positions[:, 0])
    columns = tf.range(tf.size(rows, tf.int64)) - tf.searchsorted(rows, rows, out_type=tf.int64)
    return tokens, tf.stack([rows, columns], axis=1)


def check_max_tokens(max_tokens: int | None) -> None:
    """Refuses a limit that leaves no token."""
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"Expected max_tokens >= 1, received {max_tokens}.")


def pad_rows(ids: tf.Tensor, rows: tf.Tensor, *, batch: tf.Tensor, length: int | None) -> tf.Tensor:
    """Puts flat ids into one 0-padded row per text, int32 `[batch, length]`."""
    ragged = tf.RaggedTensor.from_value_rowids(
        ids, tf.cast(rows, tf.int64), nrows=tf.cast(batch, tf.int64), validate=False
    )
    return ragged.to_tensor(shape=[None, length])
