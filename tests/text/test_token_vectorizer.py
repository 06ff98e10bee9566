from __future__ import annotations

import pytest
import tensorflow as tf

from use_st5.text.ngram_vocabulary import EMPTY_ID, NGramVocabulary
from use_st5.text.token_vectorizer import UnigramVectorizer


def test_tokens_alone_cut_and_padded() -> None:
    vectorizer = UnigramVectorizer(NGramVocabulary(("the", "cat", "do", "n't"), unigram_buckets=2))
    texts = tf.constant(["The cat", "", "don't zzz the"])
    ids = vectorizer.padded(texts).numpy()
    bucket = int(ids[2, 2])
    assert bucket in (6, 7)
    assert ids.tolist() == [[2, 3, 0, 0], [EMPTY_ID, 0, 0, 0], [4, 5, bucket, 2]]
    assert vectorizer.token_counts(texts).numpy().tolist() == [2, 1, 4]
    assert vectorizer.padded(texts, 2).numpy().tolist() == [[2, 3], [EMPTY_ID, 0], [4, 5]]


def test_a_limit_leaves_a_token() -> None:
    vectorizer = UnigramVectorizer(NGramVocabulary(("the", "cat"), unigram_buckets=2))
    for ids in (vectorizer.padded, vectorizer.token_ids):
        with pytest.raises(ValueError, match="at least 1, received 0"):
            ids(tf.constant(["the cat"]), 0)
    assert vectorizer.token_ids(tf.constant(["the cat cat"]), 2).numpy().tolist() == [[2, 3]]
