"""Sentences to the ids of their tokens, inside the TensorFlow graph."""

from __future__ import annotations

import tensorflow as tf

from use_st5.text.ngram_vectorizer import NGramVectorizer
from use_st5.text.ngram_vocabulary import NGramVocabulary


class UnigramVectorizer(tf.Module):
    """Maps sentences to the ids of their tokens: the text stage of a USE Transformer.

    The tokens, the vocabulary and the asset are those of `NGramVectorizer`; bi-grams are left out.

    Args:
        vocabulary: The terms and their ids; it holds no bi-grams.

    Raises:
        ValueError: The vocabulary holds bi-grams or buckets for them.
    """

    def __init__(self, vocabulary: NGramVocabulary) -> None:
        super().__init__(name="unigram_vectorizer")
        vocabulary.check_unigrams_only()
        self.vocabulary = vocabulary
        self._ngrams = NGramVectorizer(vocabulary)

    def padded(self, text: tf.Tensor, max_tokens: int | None = None) -> tf.Tensor:
        """The ids of each text in a row, padded with 0.

        Args:
            text: string `[batch]`.
            max_tokens: Tokens of a text that count, the rest is cut; None keeps all.

        Returns:
            int32 `[batch, length]`, where the length is that of the longest row.
        """
        ids = self._ngrams.padded(text)
        return ids if max_tokens is None else ids[:, :max_tokens]

    def unigram_ids(self, text: tf.Tensor, max_tokens: int) -> tf.Tensor:
        """The same ids in rows of one length (training arrays, a decoder's targets).

        Args:
            text: string `[batch]`.
            max_tokens: Tokens of a text that count, the rest is cut.

        Returns:
            int32 `[batch, max_tokens]`.
        """
        return self._ngrams.unigram_ids(text, max_tokens)

    def token_counts(self, text: tf.Tensor) -> tf.Tensor:
        """How many tokens each text has, uncut: string `[batch]` → int32 `[batch]`."""
        return self._ngrams.token_counts(text)
