"""How much a word weighs in a mean of words before anything is learnt: the rarer, the more."""

from __future__ import annotations

import math
from collections.abc import Sequence

import keras
import numpy as np

from use_st5.models.use_dan.model import USEDAN
from use_st5.text.ngram_vocabulary import FIRST_TERM_ID, NGramVocabulary

# Arora et al. 2017, section 3, have 1e-4 … 1e-3 for their `a`.
_USUAL = 1e-3


def weigh_words(model: USEDAN, vocabulary: NGramVocabulary, *, a: float = _USUAL) -> None:
    """Scales the rows of a drawn table by `word_weights`, in place.

    Args:
        model: As it was drawn.
        vocabulary: Its text stage's.
        a: As in `word_weights`.

    Raises:
        ValueError: The table and the vocabulary have different sizes, or `a` is not above 0.
    """
    if model.config.num_embeddings != vocabulary.size:
        raise ValueError(
            f"Expected a row for each of the vocabulary's {vocabulary.size} ids. Received: "
            f"{model.config.num_embeddings} rows"
        )
    table = model.embedding.embeddings
    table.assign(keras.ops.convert_to_numpy(table) * word_weights(vocabulary, a=a)[:, None])


def word_weights(vocabulary: NGramVocabulary, *, a: float = _USUAL) -> np.ndarray:
    """`a / (a + p)` of each row, float32 `[rows]`, `p` the share of a term among the text's terms.

    The smooth inverse frequency of Arora et al. 2017 ("A simple but tough-to-beat baseline for
    sentence embeddings", section 3). A vocabulary has no counts but is in their order, so `p` is by
    Zipf's law: of n terms the r-th has `1 / (r · ln n)`, words and bi-grams each by themselves.
    Rows of hash buckets, which rare terms share, weigh 1.

    Raises:
        ValueError: `a` is not above 0.
    """
    if not a > 0:
        raise ValueError(f"a: expected a number above 0, received {a}.")
    weights = np.ones(vocabulary.size, np.float32)
    begin = FIRST_TERM_ID
    for terms in (vocabulary.unigrams, vocabulary.bigrams):
        weights[begin : begin + len(terms)] = _by_rank(terms, a)
        begin += len(terms)
    return weights


def _by_rank(terms: Sequence[str], a: float) -> np.ndarray:
    if len(terms) < 2:  # A single one has no rank.
        return np.ones(len(terms))
    ranks = np.arange(1, len(terms) + 1)
    return a / (a + 1 / (ranks * math.log(len(terms))))
