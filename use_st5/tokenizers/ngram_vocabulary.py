"""The terms of an n-gram encoder, their ids, and the text file with them."""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from functools import cached_property
from pathlib import Path

PADDING_ID = 0
EMPTY_ID = 1
FIRST_TERM_ID = 2

# No tokenizer of this package can give this token: `<` and `>` are always tokens of their own.
EMPTY_TERM = "<empty>"

# The prefix of a piece that does not begin its word, as in BERT's vocabularies.
PIECE_MARK = "##"

_HEADER = (
    "<use_st5 n-gram vocabulary 1> unigrams={} bigrams={} unigram_buckets={} bigram_buckets={}"
)
_LARGEST_FILE = 2**27  # bytes: a hundred times the size of the shipped models' files
_HEADER_PATTERN = re.compile(re.escape(_HEADER).replace(r"\{\}", r"(\d{1,18})"))


@dataclasses.dataclass(frozen=True)
class NGramVocabulary:
    """Unigrams, bi-grams and hash buckets, each with one row of an embedding table.

    The ids, in order: 0 padding; 1 a text without any token; the unigrams; the bi-grams; the
    unigram buckets; the bi-gram buckets.

    The file is UTF-8 text with one line per term, so that a term's line number (from 0) is its
    id: line 0, where the padding would stand, describes the file, line 1 is `<empty>`.
    A TensorFlow lookup table can read it as it is.

    Args:
        unigrams: distinct tokens without white space, by falling frequency.
        bigrams: distinct pairs, each two tokens with one space between, by falling frequency.
        unigram_buckets: rows that unknown unigrams are hashed into, at least 1.
        bigram_buckets: rows that unknown bi-grams are hashed into; 0 drops them.
    """

    unigrams: tuple[str, ...]
    bigrams: tuple[str, ...] = ()
    unigram_buckets: int = 1
    bigram_buckets: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "unigrams", tuple(self.unigrams))
        object.__setattr__(self, "bigrams", tuple(self.bigrams))
        if self.unigram_buckets < 1 or self.bigram_buckets < 0:
            received = f"received {self.unigram_buckets} and {self.bigram_buckets}"
            raise ValueError(f"Expected unigram_buckets >= 1 and bigram_buckets >= 0, {received}.")
        for words, terms in ((1, self.unigrams), (2, self.bigrams)):
            tokens = iter(" ".join(terms).split())
            are_terms = [*map(" ".join, zip(*[tokens] * words, strict=False))] == [*terms]
            if are_terms and len({EMPTY_TERM, *terms}) == 1 + len(terms):
                continue
            count = Counter(terms)  # Which term is wrong?
            for term in terms:
                sizes = {len(term.split()), len(term.split(" "))}
                if sizes != {words} or term == EMPTY_TERM or count[term] > 1:
                    what = "one token" if words == 1 else "two tokens and one space"
                    raise ValueError(f"Expected {what}, each term once, received {term!r}.")

    @property
    def size(self) -> int:
        """Number of ids, which is the number of rows of the embedding table."""
        return self.unigram_bucket_id + self.unigram_buckets + self.bigram_buckets

    @property
    def unigram_bucket_id(self) -> int:
        """The first id of the unigram buckets."""
        return FIRST_TERM_ID + len(self.unigrams) + len(self.bigrams)

    @property
    def bigram_bucket_id(self) -> int:
        """The first id of the bi-gram buckets (`size` if there are none)."""
        return self.unigram_bucket_id + self.unigram_buckets

    @cached_property
    def has_pieces(self) -> bool:
        """Whether there are pieces of words, which begin with "##"."""
        return re.search(f"(^|\n){PIECE_MARK}.", "\n".join(self.unigrams)) is not None

    def check_unigrams_only(self) -> None:
        """Checks that there are neither bi-grams nor buckets for them."""
        if number := len(self.bigrams) + self.bigram_buckets:
            raise ValueError(f"Expected a vocabulary without bi-grams, received rows for {number}.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vocabulary as one text file; equal vocabularies give equal bytes."""
        # Imported here because exported readers contain this file but no other part of use_st5.
        from use_st5.io.files import atomic_path

        header = _HEADER.format(
            len(self.unigrams), len(self.bigrams), self.unigram_buckets, self.bigram_buckets
        )
        lines = (header, EMPTY_TERM, *self.unigrams, *self.bigrams, "")
        with atomic_path(path) as temporary:
            temporary.write_bytes("\n".join(lines).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NGramVocabulary:
        """Reads a vocabulary that `save` wrote."""
        path = Path(path)
        if (size := path.stat().st_size) > _LARGEST_FILE:
            raise ValueError(f"{path}: expected up to {_LARGEST_FILE:,} bytes, received {size:,}.")
        # Not splitlines(), which would also break at characters that a term may hold.
        header, *lines = path.read_bytes().decode(errors="replace").split("\n")
        match = _HEADER_PATTERN.fullmatch(header)
        if match is None:
            begin = _HEADER.split(">")[0]
            raise ValueError(f"{path}: expected '{begin}>' at the begin, found '{header[:80]}'.")
        unigrams, bigrams, unigram_buckets, bigram_buckets = map(int, match.groups())
        if len(lines) != 1 + unigrams + bigrams + 1 or lines[0] != EMPTY_TERM or lines[-1]:
            what = f"{unigrams} unigrams and {bigrams} bi-grams, found {len(lines) - 1} lines"
            raise ValueError(f"{path}: expected '{EMPTY_TERM}', {what}. Copy or build it again.")
        try:
            return cls(
                unigrams=tuple(lines[1 : 1 + unigrams]),
                bigrams=tuple(lines[1 + unigrams : -1]),
                unigram_buckets=unigram_buckets,
                bigram_buckets=bigram_buckets,
            )
        except ValueError as error:
            raise ValueError(f"{path}: {error} Copy or build it again.") from error
