"""Scales of whole groups of weights, set after training on development data.

The teacher's loss leaves a USE-DAN with weights that compare sentences worse than rescaled ones do:
bi-grams are seen too rarely to be as sure as they are loud, while unknown words and numbers, whose
vectors are averages over everything that shared a row, are too quiet for what they tell.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from use_st5.models.use_dan.model import USEDAN
from use_st5.text.ngram_vocabulary import FIRST_TERM_ID, NGramVocabulary


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Factors on groups of weights; 1 changes nothing.

    Attributes:
        frequent: On the rows of the `frequent_count` most frequent words.
        frequent_count: How many those are.
        numbers: On the rows of words with a digit.
        bigrams: On the rows of bi-grams.
        unknown: On the rows of hash buckets.
        skip: On the projection around the last block, against the block's own output.
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
        model: Trained; its last block must change the width, so that there is a projection.
        vocabulary: The vocabulary it was trained with.
        calibration: The factors.

    Raises:
        ValueError: The table and the vocabulary have different sizes, or there is no projection.
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
