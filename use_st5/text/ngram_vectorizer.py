"""Sentences to the ids of their unigrams and bi-grams, inside the TensorFlow graph."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

import tensorflow as tf

from use_st5.text.ngram_vocabulary import EMPTY_TERM, NGramVocabulary
from use_st5.text.ptb_tokenizer import PTBTokenizer

_UNKNOWN = -1


class NGramVectorizer(tf.Module):
    """Maps sentences to ids of unigrams and bi-grams, by core TensorFlow ops alone.

    One implementation serves the data pipeline (`dataset.batch(n).map(vectorizer.padded)`) and
    the exported graph. The ids of a sentence alternate: its first token, the pair of its first
    and second token, its second token, and so on. An unknown token has the id of its hash
    bucket; an unknown pair has one too, or is left out where the vocabulary has no buckets for
    pairs. A text without any token has exactly one id, 1.

    The vocabulary is a tracked asset: a SavedModel of a module that holds the vectorizer as an
    attribute carries it as `assets/vocabulary.txt`.

    Args:
        vocabulary: the terms and their ids.
    """

    def __init__(self, vocabulary: NGramVocabulary) -> None:
        super().__init__(name="ngram_vectorizer")
        self.vocabulary = vocabulary
        self._tokenizer = PTBTokenizer()
        # The asset must be there when a SavedModel is written: it lives as long as this object.
        folder = tempfile.mkdtemp(prefix="use_st5_")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder, "vocabulary.txt")
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

    def flat(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the ids of all texts end to end.

        Args:
            text: string `[batch]`.

        Returns:
            `(ids, rows)`, both int32 `[terms]`: the ids, and for each the text it belongs to.
            `rows` never falls and names every text at least once.
        """
        return self._terms(text, max_tokens=None)

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """Returns the ids of each text in a row, padded with 0.

        Args:
            text: string `[batch]`.
            max_tokens: tokens of a text that count, the rest is cut; `None` keeps all.

        Returns:
            int32 `[batch, length]`, where the length is `2 * max_tokens - 1`, or that of the
            longest row without `max_tokens`.
        """
        check_max_tokens(max_tokens)
        ids, rows = self._terms(text, max_tokens=max_tokens)
        length = None if max_tokens is None else 2 * max_tokens - 1
        return pad_rows(ids, rows, batch=tf.shape(text)[0], length=length)

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """Returns how many tokens each text has, a text without any counted as 1.

        Args:
            text: string `[batch]`.

        Returns:
            int32 `[batch]`.
        """
        _, positions = self.split(text)
        rows = tf.cast(positions[:, 0], tf.int32)
        return tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, tf.shape(text)[0])

    def unigram_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """Returns the ids of each text's tokens alone, padded with 0 (a decoder's targets).

        Args:
            text: string `[batch]`.
            max_tokens: tokens of a text that count, the rest is cut.

        Returns:
            int32 `[batch, max_tokens]`.
        """
        check_max_tokens(max_tokens)
        tokens, positions = self.split(text)
        kept = positions[:, 1] < max_tokens
        ids = self._unigram_ids(tf.boolean_mask(tokens, kept))
        rows = tf.cast(tf.boolean_mask(positions[:, 0], kept), tf.int32)
        return pad_rows(tf.cast(ids, tf.int32), rows, batch=tf.shape(text)[0], length=max_tokens)

    def split(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns all tokens end to end, `[tokens]`, and row and column of each, `[tokens, 2]`."""
        spaced = tf.strings.regex_replace(self._tokenizer.spaced(text), "^ *$", EMPTY_TERM)
        # What tf.strings.split computes, without the ragged tensor around it.
        positions, tokens, _ = tf.raw_ops.StringSplitV2(input=spaced, sep="")
        return tokens, positions

    def buckets(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the int64 ids of the hash buckets that tokens fall into."""
        bucket = tf.strings.to_hash_bucket_fast(tokens, self.vocabulary.unigram_buckets)
        return self.vocabulary.unigram_bucket_id + bucket

    def _unigram_ids(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the int64 ids of tokens; unknown ones get those of their buckets."""
        known = self.table.lookup(tokens)
        return tf.where(known == _UNKNOWN, self.buckets(tokens), known)

    def _bigram_ids(self, pairs: tf.Tensor) -> tf.Tensor:
        """Returns the int64 ids of pairs; unknown ones get those of their buckets, or -1."""
        known = self.table.lookup(pairs)
        if not self.vocabulary.bigram_buckets:
            return known
        bucket = tf.strings.to_hash_bucket_fast(pairs, self.vocabulary.bigram_buckets)
        return tf.where(known == _UNKNOWN, self.vocabulary.bigram_bucket_id + bucket, known)

    def _terms(self, text: tf.Tensor, *, max_tokens: int | None) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids and rows of the unigrams and bi-grams, int32 `[terms]` each."""
        tokens, positions = self.split(text)
        columns = positions[:, 1]
        pairs = tf.strings.join([tokens, tf.roll(tokens, -1, axis=0)], separator=" ")
        # The first token of a text ends no pair; nor does the first of all, rolled to the end.
        pair_ids = tf.where(tf.roll(columns, -1, axis=0) > 0, self._bigram_ids(pairs), _UNKNOWN)
        unigram_ids = self._unigram_ids(tokens)
        if max_tokens is not None:
            unigram_ids = tf.where(columns < max_tokens, unigram_ids, _UNKNOWN)
            pair_ids = tf.where(columns < max_tokens - 1, pair_ids, _UNKNOWN)
        ids = tf.reshape(tf.stack([unigram_ids, pair_ids], axis=1), [-1])
        kept = tf.where(ids != _UNKNOWN)[:, 0]
        rows = tf.gather(positions[:, 0], kept // 2)
        return tf.cast(tf.gather(ids, kept), tf.int32), tf.cast(rows, tf.int32)


def check_max_tokens(max_tokens: int | None) -> None:
    """Refuses a limit that leaves no token."""
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"Expected max_tokens to be at least 1, received {max_tokens}.")


def pad_rows(ids: tf.Tensor, rows: tf.Tensor, *, batch: tf.Tensor, length: int | None) -> tf.Tensor:
    """Puts flat ids into one 0-padded row per text, int32 `[batch, length]`."""
    ragged = tf.RaggedTensor.from_value_rowids(
        ids, tf.cast(rows, tf.int64), nrows=tf.cast(batch, tf.int64), validate=False
    )
    return ragged.to_tensor(shape=[None, length])
