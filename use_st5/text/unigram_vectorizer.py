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

    def flat(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of all texts end to end, and the text of each."""
        return self._ngrams.flat(text)
