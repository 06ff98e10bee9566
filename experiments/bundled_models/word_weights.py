"""A USE-DAN's weights: rows scaled by how frequent their words are, factors after training."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import keras
import numpy as np

from use_st5.models import USEDAN
from use_st5.tokenizers import NGramVocabulary

# The id of a vocabulary's first word; 0 is padding, 1 an empty text.
FIRST_TERM_ID = 2


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Factors on groups of weights; 1 changes nothing.

    Attributes:
        frequent: Factor on the rows of the `frequent_count` most frequent words.
        frequent_count: The number of these words.
        numbers: Factor on the rows of words with a digit.
        bigrams: Factor on the rows of bi-grams.
        unknown: Factor on the rows of hash buckets.
        skip: Factor on the projection around the last block, but not on the block's own output.
    """

    frequent: float = 1.0
    frequent_count: int = 30
    numbers: float = 1.0
    bigrams: float = 1.0
    unknown: float = 1.0
    skip: float = 1.0


def calibrate(model: USEDAN, vocabulary: NGramVocabulary, calibration: Calibration) -> None:
    """Multiplies the model's weights by the factors, in place.

    Args:
        model: The trained model; its last block must change the width and so have a projection.
        vocabulary: The vocabulary it was trained with.
        calibration: The factors.
    """
    projections = list(model.network.get_layer("feed_forward").projections.values())
    if not projections or model.config.num_embeddings != vocabulary.size:
        raise ValueError(
            "Expected a model with a projection and a row for each of the vocabulary's "
            f"{vocabulary.size} ids. Received: {model.config}"
        )
    factors = row_factors(vocabulary, calibration)
    embeddings = model.embedding.embeddings
    embeddings.assign(embeddings.numpy() * factors[:, None])
    kernel = projections[-1].kernel
    kernel.assign(kernel.numpy() * np.float32(calibration.skip))


def row_factors(vocabulary: NGramVocabulary, calibration: Calibration) -> np.ndarray:
    """The factor of each row of the table, float32 `[rows]`."""
    factors = np.ones(vocabulary.size, np.float32)
    first_bigram = FIRST_TERM_ID + len(vocabulary.unigrams)
    for row, word in enumerate(vocabulary.unigrams, FIRST_TERM_ID):
        if any(character.isdigit() for character in word):
            factors[row] = calibration.numbers
    factors[FIRST_TERM_ID : FIRST_TERM_ID + calibration.frequent_count] *= calibration.frequent
    factors[first_bigram : vocabulary.unigram_bucket_id] = calibration.bigrams
    factors[vocabulary.unigram_bucket_id :] = calibration.unknown
    return factors


# Arora et al. 2017, section 3, have 1e-4 … 1e-3 for their `a`.
_USUAL = 1e-3


def weigh_words(model: USEDAN, vocabulary: NGramVocabulary, *, a: float = _USUAL) -> None:
    """Scales the rows of an initial table by `word_weights`, in place.

    Args:
        model: The model with its initial weights.
        vocabulary: The vocabulary of its tokenizer.
        a: As in `word_weights`.
    """
    if model.config.num_embeddings != vocabulary.size:
        raise ValueError(
            f"Expected a row for each of the vocabulary's {vocabulary.size} ids. Received: "
            f"{model.config.num_embeddings} rows"
        )
    table = model.embedding.embeddings
    table.assign(keras.ops.convert_to_numpy(table) * word_weights(vocabulary, a=a)[:, None])


def word_weights(vocabulary: NGramVocabulary, *, a: float = _USUAL) -> np.ndarray:
    """`a / (a + p)` of each row, float32 `[rows]`; `p` is a term's share of the text's terms.

    This is the smooth inverse frequency of Arora et al. 2017 ("A simple but tough-to-beat baseline
    for sentence embeddings", section 3). A vocabulary has no counts, but it is ordered by them, so
    `p` follows Zipf's law: `1 / (r · ln n)` for the r-th of n terms, separately for words and
    bi-grams. Rows of hash buckets, which rare terms share, have weight 1.
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
    if len(terms) < 2:  # Zipf's law needs two terms: ln 1 is 0.
        return np.ones(len(terms))
    ranks = np.arange(1, len(terms) + 1)
    return a / (a + 1 / (ranks * math.log(len(terms))))
