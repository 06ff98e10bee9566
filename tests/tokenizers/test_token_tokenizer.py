from __future__ import annotations

import tensorflow as tf

from use_st5.tokenizers.ngram_vocabulary import EMPTY_ID, NGramVocabulary
from use_st5.tokenizers.token_tokenizer import UnigramTokenizer


def test_tokens_alone_cut_and_padded() -> None:
    tokenizer = UnigramTokenizer(NGramVocabulary(("the", "cat", "do", "n't"), unigram_buckets=2))
    texts = tf.constant(["The cat", "", "don't zzz the"])
    ids = tokenizer.padded(texts).numpy()
    bucket = int(ids[2, 2])
    assert bucket in (6, 7)
    assert ids.tolist() == [[2, 3, 0, 0], [EMPTY_ID, 0, 0, 0], [4, 5, bucket, 2]]
    assert tokenizer.token_counts(texts).numpy().tolist() == [2, 1, 4]
    for cut in (tokenizer.padded, tokenizer.token_ids):
        assert cut(texts, 2).numpy().tolist() == [[2, 3], [EMPTY_ID, 0], [4, 5]]
