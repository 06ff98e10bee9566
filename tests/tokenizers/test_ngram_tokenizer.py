from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from use_st5.tokenizers.ngram_tokenizer import NGramTokenizer
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer

# ids: the 2, cat 3, sat 4, n't 5, "the cat" 6, "cat sat" 7, buckets 8-10.
VOCABULARY = NGramVocabulary(
    unigrams=("the", "cat", "sat", "n't"), bigrams=("the cat", "cat sat"), unigram_buckets=3
)
TEXTS = [
    "The cat sat",
    "",
    "sat The cat! Didn't the cat sit?",
    " \u3000\n",
    "zebra",
    "cat",
    "the",
    "<empty>",
    "cat <use_st5 n-gram vocabulary 1> sat",
]


@pytest.fixture(scope="module")
def tokenizer() -> NGramTokenizer:
    return NGramTokenizer(VOCABULARY)


def test_flat_by_hand(tokenizer: NGramTokenizer) -> None:
    ids, rows = tokenizer.flat(tf.constant(["The cat sat", "", "sat the", "the the cat"]))
    np.testing.assert_array_equal(ids, [2, 6, 3, 7, 4, 1, 4, 2, 2, 2, 6, 3])
    np.testing.assert_array_equal(rows, [0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 3])
    assert ids.dtype == rows.dtype == tf.int32


def test_padded_by_hand(tokenizer: NGramTokenizer) -> None:
    text = tf.constant(["The cat sat", "", "sat the cat"])
    expected = [[2, 6, 3, 7, 4], [1, 0, 0, 0, 0], [4, 2, 6, 3, 0]]
    np.testing.assert_array_equal(tokenizer.padded(text), expected)
    # With two tokens: "sat the" is unknown, and the third token must not take its place.
    expected = [[2, 6, 3], [1, 0, 0], [4, 2, 0]]
    np.testing.assert_array_equal(tokenizer.padded(text, 2), expected)
    np.testing.assert_array_equal(tokenizer.padded(text, 1), [[2], [1], [4]])
    assert tokenizer.padded(text, 50).shape == (3, 99)


def test_unigram_ids_by_hand(tokenizer: NGramTokenizer) -> None:
    text = tf.constant(["The cat sat the", "", "sat"])
    expected = [[2, 3, 4], [1, 0, 0], [4, 0, 0]]
    np.testing.assert_array_equal(tokenizer.token_ids(text, 3), expected)


@pytest.mark.parametrize("bigram_buckets", [0, 7])
@pytest.mark.parametrize("max_tokens", [None, 1, 4])
def test_equals_plain_python(bigram_buckets: int, max_tokens: int | None) -> None:
    vocabulary = NGramVocabulary(
        unigrams=VOCABULARY.unigrams,
        bigrams=VOCABULARY.bigrams,
        unigram_buckets=3,
        bigram_buckets=bigram_buckets,
    )
    words = ["the", "cat", "sat", "zebra", "don't", "dog.", ",", "(", "the cat", "", "\u3000"]
    generator = random.Random(1)
    texts = [" ".join(generator.choices(words, k=generator.randint(0, 7))) for _ in range(300)]
    found = NGramTokenizer(vocabulary).padded(tf.constant(texts + TEXTS), max_tokens)
    expected = _reference(vocabulary, texts + TEXTS, max_tokens)
    assert [[i for i in row if i] for row in found.numpy().tolist()] == expected


def test_unknown_tokens_have_stable_buckets(tokenizer: NGramTokenizer) -> None:
    words = [f"word{k}" for k in range(200)]
    ids = tokenizer.padded(tf.constant(words)).numpy()[:, 0]
    assert set(ids) == {8, 9, 10}
    assert ids.max() < VOCABULARY.size
    np.testing.assert_array_equal(tokenizer.token_ids(tf.constant(words), 1)[:, 0], ids)
    # The hash is part of the model: ids that were trained on must not change.
    assert ids[:6].tolist() == [8, 8, 8, 10, 10, 9]


def test_static_shapes(tokenizer: NGramTokenizer) -> None:
    signature = [tf.TensorSpec([None], tf.string)]
    padded = tf.function(lambda text: tokenizer.padded(text, 4), input_signature=signature)
    assert padded.get_concrete_function().output_shapes.as_list() == [None, 7]
    targets = tf.function(lambda text: tokenizer.token_ids(text, 4), input_signature=signature)
    assert targets.get_concrete_function().output_shapes.as_list() == [None, 4]


def test_vocabulary_survives_a_moved_folder_and_a_second_round_trip(tmp_path: Path) -> None:
    tokenizer = NGramTokenizer(VOCABULARY)
    expected = tokenizer.padded(tf.constant(TEXTS)).numpy()
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    _export(tokenizer, first)
    del tokenizer  # and with it the file that the table was made from
    first.rename(second)
    loaded = tf.saved_model.load(second)
    tf.saved_model.save(loaded, third)
    del loaded
    shutil.rmtree(second)
    third.rename(first)
    found = tf.saved_model.load(first).preprocess(tf.constant(TEXTS))
    np.testing.assert_array_equal(found, expected)
    assert NGramVocabulary.load(first / "assets" / "vocabulary.txt") == VOCABULARY


def test_no_python_and_no_foreign_ops_in_the_graph(tokenizer: NGramTokenizer) -> None:
    graph = tf.function(tokenizer.flat, input_signature=[tf.TensorSpec([None], tf.string)])
    operations = graph.get_concrete_function().graph.get_operations()
    assert not {kind for kind in (op.type for op in operations) if "PyFunc" in kind or ">" in kind}
    assert len(operations) < 100  # few ops: for one sentence they cost more than the work


def _export(tokenizer: NGramTokenizer, folder: Path) -> None:
    module = tf.Module()
    module.tokenizer = tokenizer
    signature = [tf.TensorSpec([None], tf.string)]
    module.preprocess = tf.function(tokenizer.padded, input_signature=signature)
    tf.saved_model.save(module, str(folder))


def _reference(
    vocabulary: NGramVocabulary, texts: list[str], max_tokens: int | None
) -> list[list[int]]:
    """The definition of the ids, in plain Python."""
    known = {term: 2 + k for k, term in enumerate(vocabulary.unigrams + vocabulary.bigrams)}

    def hashed(term: bytes, buckets: int, first: int) -> int:
        return first + int(tf.strings.to_hash_bucket_fast([term], buckets)[0])

    rows = []
    for tokens in PTBTokenizer()(tf.constant(texts)).to_list():
        tokens = tokens[:max_tokens]
        row = [] if tokens else [1]
        for k, token in enumerate(tokens):
            if k:
                pair = tokens[k - 1] + b" " + token
                if pair.decode() in known:
                    row.append(known[pair.decode()])
                elif vocabulary.bigram_buckets:
                    row.append(hashed(pair, vocabulary.bigram_buckets, vocabulary.bigram_bucket_id))
            if token.decode() in known:
                row.append(known[token.decode()])
            else:
                row.append(hashed(token, vocabulary.unigram_buckets, vocabulary.unigram_bucket_id))
        rows.append(row)
    return rows
