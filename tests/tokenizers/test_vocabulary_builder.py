"""The most frequent terms of a corpus, counted in bounded memory."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import tensorflow as tf

from use_st5.tokenizers import vocabulary_builder
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer
from use_st5.tokenizers.vocabulary_builder import (
    BoundedCounter,
    VocabularyBuilder,
    build_vocabulary,
)


def test_exact_while_the_terms_fit() -> None:
    counter = BoundedCounter(max_terms=3)
    for batch in ("abca", "cc", ""):
        counter.update(batch)
    assert counter.counts == Counter("abcacc")
    assert counter.error == 0


def test_a_counter_by_hand() -> None:
    counter = BoundedCounter(max_terms=4)
    counter.update("aaaaabbbbccde")  # a 5, b 4, c 2, d 1, e 1: the third count is subtracted
    assert counter.counts == {"a": 3, "b": 2}
    assert counter.error == 2


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_within_the_bound(seed: int) -> None:
    generator = random.Random(seed)
    terms = [int(generator.paretovariate(0.6)) for _ in range(20_000)]
    counter = BoundedCounter(max_terms=100)
    for start in range(0, len(terms), 50):
        counter.update(terms[start : start + 50])
        assert len(counter.counts) <= 100
        assert counter.error <= (start + 50) / 51
    true = Counter(terms)
    assert counter.error > 0
    for term, count in true.items():
        assert counter.counts[term] <= count <= counter.counts[term] + counter.error
    assert [term for term, _ in counter.counts.most_common(5)] == [
        term for term, _ in true.most_common(5)
    ]


SENTENCES = ["The cat sat.", "the cat didn't", "", "A cat, the cat", "zebra"]


def test_by_hand() -> None:
    vocabulary = build_vocabulary(
        SENTENCES, num_unigrams=4, num_bigrams=2, unigram_buckets=3, bigram_buckets=5
    )
    # cat 4, the 3; then, once each, by their bytes: "," "." …; pairs: "the cat" 3, then ", the".
    assert vocabulary.unigrams == ("cat", "the", ",", ".")
    assert vocabulary.bigrams == ("the cat", ", the")
    assert (vocabulary.unigram_buckets, vocabulary.bigram_buckets) == (3, 5)


def test_equals_exact_counts_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_builder, "_BATCH", 7)
    words = ["a", "b", "c.", "don't", "(x)", "é", "cannot"]
    generator = random.Random(3)
    lines = [" ".join(generator.choices(words, k=generator.randint(0, 9))) for _ in range(200)]
    builder = VocabularyBuilder()
    builder.add(lines[:90])
    builder.add(line for line in lines[90:])
    unigrams: Counter[bytes] = Counter()
    bigrams: Counter[bytes] = Counter()
    for tokens in PTBTokenizer()(tf.constant(lines)).to_list():
        unigrams.update(tokens)
        bigrams.update(a + b" " + b for a, b in zip(tokens, tokens[1:], strict=False))
    assert builder.unigrams.counts == unigrams
    assert builder.bigrams.counts == bigrams
    assert builder.sentences == 200
    vocabulary = builder.build(num_unigrams=5, num_bigrams=11)
    assert vocabulary.unigrams == _top(unigrams, 5)
    assert vocabulary.bigrams == _top(bigrams, 11)


def test_options() -> None:
    builder = VocabularyBuilder()
    builder.add(SENTENCES)
    assert builder.build(num_unigrams=9, num_bigrams=9, min_count=2).unigrams == ("cat", "the")
    assert builder.build(num_unigrams=9, num_bigrams=9, min_count=2).bigrams == ("the cat",)
    # Words in `always` are tokenized, take places in any case, and are ordered by their counts.
    always = ["Zebra", "cannot", "the"]
    vocabulary = builder.build(num_unigrams=5, min_count=2, always=always)
    assert vocabulary.unigrams == ("cat", "the", "zebra", "can", "not")
    assert builder.build(num_unigrams=4, always=always).unigrams == ("the", "zebra", "can", "not")
    with pytest.raises(ValueError, match="4 words, more than num_unigrams=3"):
        builder.build(num_unigrams=3, always=always)
    assert builder.build(num_unigrams=0).size == 3


def test_nothing_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    assert build_vocabulary([], num_unigrams=5, num_bigrams=5).unigrams == ()
    vocabulary = build_vocabulary(iter(SENTENCES), num_unigrams=1, show_progress=True)
    assert vocabulary.unigrams == ("cat",)
    assert not capsys.readouterr().out


def _top(counts: Counter[bytes], number: int) -> tuple[str, ...]:
    ordered = sorted(counts, key=lambda term: (-counts[term], term))
    return tuple(term.decode() for term in ordered[:number])
