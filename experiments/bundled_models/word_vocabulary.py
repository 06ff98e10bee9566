"""A vocabulary of the words of a training text, and of the pieces of BERT."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from use_st5.tokenizers import NGramVocabulary

# The prefix of a piece that does not begin its word, as in BERT's vocabularies.
PIECE_MARK = "##"


@dataclasses.dataclass(frozen=True)
class VocabularySettings:
    """The number of terms of each kind.

    Attributes:
        num_unigrams: Number of words and pieces of words.
        num_bigrams: Number of bi-grams.
        unigram_buckets: Number of rows that unknown words share.
        pieces: A vocabulary of BERT's format below the data's folder: its words have a place
            however rare they are, and so have its pieces, for a tokenizer that uses pieces.
    """

    num_unigrams: int
    num_bigrams: int
    unigram_buckets: int
    pieces: str | None = None

    def wordpieces(self, data: Path) -> tuple[list[str], list[str]]:
        """The words and the pieces of the file that `pieces` names; empty without a file."""
        return read_wordpieces(data / self.pieces) if self.pieces else ([], [])

    def build(
        self, data: Path, sentences: Sequence[str], corpora: Iterable[str]
    ) -> NGramVocabulary:
        """Counts terms.

        Args:
            data: The data folder, with the file that `pieces` names.
            sentences: The text of the training. Only its bi-grams are counted, because others
                would never be trained.
            corpora: Further text, whose words are counted, too: even a word that only this text
                has gets its vector from the teachers.
        """
        from use_st5.tokenizers import build_vocabulary  # It needs TensorFlow.

        words, pieces = self.wordpieces(data)
        vocabulary = build_vocabulary(
            itertools.chain(sentences, corpora),
            show_progress=True,
            num_unigrams=self.num_unigrams - len(pieces),
            num_bigrams=0,
            always=words,
            unigram_buckets=self.unigram_buckets,
        )
        bigrams: tuple[str, ...] = ()
        if self.num_bigrams:
            bigrams = build_vocabulary(
                sentences, show_progress=True, num_unigrams=1, num_bigrams=self.num_bigrams
            ).bigrams
        unigrams = (*vocabulary.unigrams, *pieces)
        return dataclasses.replace(vocabulary, unigrams=unigrams, bigrams=bigrams)


def read_wordpieces(path: Path) -> tuple[list[str], list[str]]:
    """Reads a `vocab.txt`, one term a line.

    Terms of other scripts are left out, since they would take the places of English words; special
    tokens such as "[CLS]" are left out, too.

    Returns:
        The words, and the pieces with their mark.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected a vocabulary in BERT's format at {path}, found none. Put vocab.txt of "
            "bert-base-uncased there (Apache-2.0)."
        )
    terms = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.isascii() and not re.fullmatch(r"\[.+\]", line)
    ]
    pieces = [term for term in terms if term.startswith(PIECE_MARK) and term != PIECE_MARK]
    return [term for term in terms if PIECE_MARK not in term], pieces
