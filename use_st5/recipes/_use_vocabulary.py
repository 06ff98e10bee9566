"""The vocabulary of words that a Universal Sentence Encoder's recipe counts in its own text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from use_st5.recipes._wordpieces import read_wordpieces
from use_st5.text.ngram_vocabulary import NGramVocabulary
from use_st5.text.vocabulary_builder import build_vocabulary


@dataclasses.dataclass(frozen=True)
class VocabularySettings:
    """How many terms of each kind.

    Attributes:
        num_unigrams: Words, and pieces of words.
        num_bigrams: Bi-grams.
        unigram_buckets: Rows that unknown words share.
        pieces: A vocabulary of BERT's format below the data's folder: its words have a place
            whatever their number, and so have its pieces, for a vectorizer that knows them.
    """

    num_unigrams: int
    num_bigrams: int
    unigram_buckets: int
    pieces: str | None = None

    def wordpieces(self, data: Path) -> tuple[list[str], list[str]]:
        """The words and the pieces of the file that `pieces` names; none without one.

        Raises:
            FileNotFoundError: There is no such file.
        """
        return read_wordpieces(data / self.pieces) if self.pieces else ([], [])

    def build(self, data: Path, sentences: Sequence[str]) -> NGramVocabulary:
        """Counts the terms of the sentences."""
        words, pieces = self.wordpieces(data)
        vocabulary = build_vocabulary(
            sentences,
            show_progress=True,
            num_unigrams=self.num_unigrams - len(pieces),
            num_bigrams=self.num_bigrams,
            always=words,
            unigram_buckets=self.unigram_buckets,
        )
        return dataclasses.replace(vocabulary, unigrams=(*vocabulary.unigrams, *pieces))
