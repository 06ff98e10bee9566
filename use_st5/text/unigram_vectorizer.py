"""Sentences to the ids of their tokens, inside the TensorFlow graph."""

from __future__ import annotations

import tensorflow as tf

from use_st5.text.token_vectorizer import TokenVectorizer


class UnigramVectorizer(TokenVectorizer):
    """Maps each token of a sentence to one id; an unknown one has that of its hash bucket.

    Args:
        vocabulary: The terms and their ids; it holds no bi-grams.

    Raises:
        ValueError: The vocabulary holds bi-grams or buckets for them.
    """

    def ids(self, tokens: tf.Tensor, positions: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The id of each token, and its row."""
        return tf.cast(self._ngrams.ids(tokens), tf.int32), tf.cast(positions[:, 0], tf.int32)
