"""The most frequent unigrams and bi-grams of a corpus of any size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from use_st5.io.lines import batched
from use_st5.io.progress import watched
from use_st5.tokenizers.ngram_vocabulary import NGramVocabulary
from use_st5.tokenizers.ptb_tokenizer import PTBTokenizer


class BoundedCounter:
    """Counts terms and keeps at most `max_terms` of them between two updates.

    When there are more, the count of the term at place `max_terms // 2 + 1` is subtracted from
    all counts, and terms whose count falls to zero are forgotten: the summary of Misra and Gries
    (1982), made for batches by Agarwal et al., "Mergeable Summaries" (2012). With N terms seen so
    far, for every term `counts[term] <= true count <= counts[term] + error` (`counts[term]` is 0
    for a forgotten one), and `error <= N / (max_terms // 2 + 1)`. Two terms that are never
    forgotten lose the same amount, so their order is correct. As long as no term was forgotten,
    the counts are exact.

    Args:
        max_terms: distinct terms to keep, at least 2; about 150 bytes each.

    Attributes:
        error: the total that was subtracted so far; the counts are exact while it is 0.
    """

    def __init__(self, *, max_terms: int) -> None:
        self.max_terms = max_terms
        self.error = 0
        self.counts: Counter[Any] = Counter()

    def update(self, terms: Iterable[Any]) -> None:
        """Counts a batch of terms; if there are too many, at most half of them remain."""
        self.counts.update(terms)
        if len(self.counts) <= self.max_terms:
            return
        values = np.fromiter(self.counts.values(), dtype=np.int64, count=len(self.counts))
        place = len(values) - self.max_terms // 2 - 1
        subtracted = int(np.partition(values, place)[place])
        self.counts = Counter(
            {term: n - subtracted for term, n in self.counts.items() if n > subtracted}
        )
        self.error += subtracted


_BATCH = 8192


class VocabularyBuilder:
    """Counts the unigrams and bi-grams of sentences and picks the most frequent.

    Sentences are read once, in batches, and tokenized by the graph that the encoder uses.

    Args:
        max_terms: distinct unigrams, and as many distinct bi-grams, that are counted at a time
            (about 150 bytes each). Counts are exact as long as the corpus has no more;
            otherwise `BoundedCounter` says by how much they may fall short: with N bi-grams
            read, by at most `2 * N / max_terms`.

    Attributes:
        unigrams: the `BoundedCounter` of tokens, as UTF-8 bytes.
        bigrams: the `BoundedCounter` of pairs of tokens with one space between.
        sentences: the number of sentences read.

    Examples:
        >>> builder = VocabularyBuilder()
        >>> builder.add(line for line in open("corpus.txt", encoding="utf-8"))
        >>> vocabulary = builder.build(num_unigrams=40_000, num_bigrams=60_000)
    """

    def __init__(self, *, max_terms: int = 4_000_000) -> None:
        self.unigrams = BoundedCounter(max_terms=max_terms)
        self.bigrams = BoundedCounter(max_terms=max_terms)
        self.sentences = 0
        self._tokens = tf.function(
            _tokens_and_pairs, input_signature=[tf.TensorSpec([None], tf.string)]
        )

    def add(self, sentences: Iterable[str], *, show_progress: bool = False) -> None:
        """Counts the terms of sentences.

        Args:
            sentences: any iterable of strings, read once, a batch at a time.
            show_progress: whether to show the sentences read so far on standard error.
        """
        read = watched(sentences, "Counting terms") if show_progress else sentences
        for batch in batched(read, _BATCH):
            tokens, pairs = self._tokens(tf.constant(batch, tf.string))
            self.unigrams.update(tokens.numpy().tolist())
            self.bigrams.update(pairs.numpy().tolist())
            self.sentences += len(batch)

    def build(
        self,
        *,
        num_unigrams: int,
        num_bigrams: int = 0,
        min_count: int = 1,
        always: Iterable[str] = (),
        unigram_buckets: int = 1,
        bigram_buckets: int = 0,
    ) -> NGramVocabulary:
        """Returns the most frequent terms; equal counts are ordered by their UTF-8 bytes.

        Args:
            num_unigrams: how many unigrams to keep at most.
            num_bigrams: how many bi-grams to keep at most.
            min_count: the lowest count of a term that is kept.
            always: words to include, even if they are rare. They are tokenized first, count among
                the `num_unigrams`, and are ordered by their counts like the others.
            unigram_buckets: rows that unknown unigrams are hashed into.
            bigram_buckets: rows that unknown bi-grams are hashed into; 0 drops them.

        Raises:
            ValueError: `always` names more words than `num_unigrams`.
        """
        fixed: set[bytes] = set()
        for batch in batched(always, _BATCH):
            fixed.update(self._tokens(tf.constant(batch, tf.string))[0].numpy().tolist())
        if len(fixed) > num_unigrams:
            number = len(fixed)
            raise ValueError(f"`always` has {number} words, more than {num_unigrams=}.")

        def frequent(counter: BoundedCounter, number: int) -> list[bytes]:
            counts = {term: n for term, n in counter.counts.items() if n >= min_count}
            terms = sorted(counts.keys() - fixed, key=lambda term: (-counts[term], term))
            return terms[:number]

        unigrams = sorted(
            [*fixed, *frequent(self.unigrams, num_unigrams - len(fixed))],
            key=lambda term: (-self.unigrams.counts[term], term),
        )
        return NGramVocabulary(
            unigrams=tuple(term.decode() for term in unigrams),
            bigrams=tuple(term.decode() for term in frequent(self.bigrams, num_bigrams)),
            unigram_buckets=unigram_buckets,
            bigram_buckets=bigram_buckets,
        )


def build_vocabulary(
    sentences: Iterable[str],
    *,
    max_terms: int = 4_000_000,
    show_progress: bool = False,
    **options: Any,
) -> NGramVocabulary:
    """Builds a vocabulary from one stream of sentences.

    Args:
        sentences: any iterable of strings, read once.
        max_terms: see `VocabularyBuilder`.
        show_progress: whether to show the sentences read so far on the terminal.
        **options: see `VocabularyBuilder.build`.
    """
    builder = VocabularyBuilder(max_terms=max_terms)
    builder.add(sentences, show_progress=show_progress)
    return builder.build(**options)


def _tokens_and_pairs(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns all tokens of the texts, and all pairs of neighbours within one text."""
    positions, tokens, _ = tf.raw_ops.StringSplitV2(input=PTBTokenizer().spaced(text), sep="")
    inside = positions[1:, 0] == positions[:-1, 0]
    pairs = tf.strings.join([tokens[:-1], tokens[1:]], separator=" ")
    return tokens, tf.boolean_mask(pairs, inside)
