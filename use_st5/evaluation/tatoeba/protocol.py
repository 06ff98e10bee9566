"""Finding each sentence's translation among all those of the Tatoeba test set of a language.

Artetxe and Schwenk (arXiv 1812.10464, section 4.3) measure the error in both directions, XTREME
(arXiv 2003.11080) the accuracy with the English sentences as queries, m-ST5 the mean of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from use_st5._vectors import unit_rows
from use_st5.evaluation.tatoeba.readers import ParallelSentences
from use_st5.search import exact_search
from use_st5.vector_store import Encode, as_cache


@dataclass(frozen=True)
class TatoebaScore:
    """Accuracies in one language, each in 0 … 1.

    Attributes:
        pairs: Number of sentences and of their translations.
        to_english: Share of the foreign sentences whose nearest English one is theirs.
        from_english: Share of the English sentences whose nearest foreign one is theirs.
    """

    pairs: int
    to_english: float
    from_english: float

    @property
    def mean(self) -> float:
        """The mean of both directions."""
        return (self.to_english + self.from_english) / 2


def evaluate_tatoeba(
    encode: Encode, languages: Iterable[ParallelSentences]
) -> dict[str, TatoebaScore]:
    """Searches by cosine for the one nearest sentence, in both directions.

    Right is the sentence on the same line alone, as in the published code, even where a sentence
    stands on several lines; of equally near ones the first is taken.

    Args:
        encode: Sentences → embeddings `[sentences, dim]`; any object that `numpy.asarray` takes.
        languages: At most one test set per language.

    Returns:
        Code of the language → score.

    Raises:
        ValueError: A set is empty; `encode` gives another shape or numbers that are not finite.
    """
    embed = as_cache(encode)
    return {
        sentences.language: _score(
            unit_rows(embed(sentences.foreign)), unit_rows(embed(sentences.english))
        )
        for sentences in languages
    }


def _score(foreign: np.ndarray, english: np.ndarray) -> TatoebaScore:
    return TatoebaScore(len(foreign), _accuracy(foreign, english), _accuracy(english, foreign))


def _accuracy(queries: np.ndarray, corpus: np.ndarray) -> float:
    _, rows = exact_search(queries, corpus, k=1)
    return float(np.mean(rows[:, 0] == np.arange(len(queries))))
