"""Pretrained word vectors, read from the files of word2vec and GloVe."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

_HEADER = re.compile(rb"(\d+) (\d+)\s*")
_LONGEST_LINE = 2**20
_LONGEST_WORD = 2**12
# Far more than any real file has; a header with more is not one of word vectors.
_MOST_WORDS = 2**32
_MOST_NUMBERS = 2**16


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and a vector for each.

    `load` reads word2vec's text and binary files (Mikolov et al. 2013,
    code.google.com/archive/p/word2vec; fastText's `.vec` files are word2vec's text) and GloVe's
    text (Pennington et al. 2014), whose words may contain spaces.

    Args:
        words: Distinct words, usually by falling frequency.
        vectors: float32 `[words, dimension]`.

    Raises:
        ValueError: Words and vectors do not match, words are not distinct, or a number is not
            finite.

    Examples:
        >>> vectors = WordVectors.load("GoogleNews-vectors-negative300.bin.gz", limit=200_000)
        >>> vectors.vectors.shape
        (200000, 300)
    """

    words: tuple[str, ...]
    vectors: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "vectors", np.asarray(self.vectors, np.float32))
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words) or not self.words:
            raise ValueError(
                f"Expected vectors [{len(self.words)}, dimension], one for each of at least one "
                f"word, received an array {list(self.vectors.shape)}."
            )
        if len(set(self.words)) != len(self.words):
            raise ValueError("Expected distinct words, received some twice. Keep the first.")
        finite = np.isfinite(self.vectors).all(axis=1)
        if not finite.all():
            word = self.words[int(finite.argmin())]
            raise ValueError(f"Expected finite numbers, received others in the vector of {word!r}.")

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self.vectors.shape[1]

    def places(self, tokens: Iterable[str]) -> np.ndarray:
        """The row of each token, int64 `[tokens]`; -1 if the token has no row.

        The tokens of this package are in lower case. A token that is not among the words stands for
        the first word that equals it in lower case ("london": "London"), which in most files is the
        most frequent one.
        """
        lower: dict[str, int] = {}
        for row, word in enumerate(self.words):
            lower.setdefault(word.lower(), row)
        exact = {word: row for row, word in enumerate(self.words)}
        rows = (exact.get(token, lower.get(token, -1)) for token in tokens)
        return np.fromiter(rows, np.int64)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, limit: int | None = None) -> WordVectors:
        """Reads a file of word2vec (text or binary) or GloVe; the layout is recognized.

        If a word occurs twice, its first vector is used. Bytes that are not UTF-8 become U+FFFD.

        Args:
            path: The file; if its name ends in `.gz`, it is unpacked while reading.
            limit: The number of first rows to read; None: all.
        """
        path = Path(path)
        if limit is not None and limit < 1:
            raise ValueError(f"limit: expected at least 1 word, received {limit}.")
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected a file of word vectors, found none.")
        vectors: dict[str, np.ndarray] = {}
        try:
            for word, vector in islice(_rows(path), limit):
                vectors.setdefault(word, vector)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path}: expected a complete gzip file, found a damaged one ({error}). Download "
                "it again."
            ) from error
        if not vectors:
            raise ValueError(f"{path}: expected words with vectors, found none.")
        try:
            return cls(tuple(vectors), np.stack([*vectors.values()]))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def _rows(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    with _opened(path) as stream:
        first = stream.readline(_LONGEST_LINE)
        header = _HEADER.fullmatch(first)
        if header is None:
            # GloVe's first words are single tokens: all that follows the first space is numbers.
            dimension = len(first.split()) - 1
            stream.seek(0)
            yield from _text_rows(stream, path, dimension, line=1)
            return
        count, dimension = _claimed(header, path)
        start = stream.tell()
        text = _parsed(stream.readline(_LONGEST_LINE), dimension) is not None
        stream.seek(start)
        if text:
            rows = _text_rows(stream, path, dimension, line=2)
        else:
            rows = _binary_rows(stream, path, dimension, count)
        rows_read = 0
        for rows_read, row in enumerate(islice(rows, count), start=1):  # noqa: B007
            yield row
        if rows_read < count:
            raise ValueError(
                f"{path}: expected {count} words as its first line says, found {rows_read}."
            )


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _claimed(header: re.Match[bytes], path: Path) -> tuple[int, int]:
    """The number of words and the length of a vector, checked before memory is allocated."""
    texts = header.groups()
    # A number of 20 digits or more is too large in any case, so it is not converted.
    count, dimension = (int(text) if len(text) < 20 else _MOST_WORDS + 1 for text in texts)
    if count > _MOST_WORDS or not 1 <= dimension <= _MOST_NUMBERS:
        raise ValueError(
            f"{path}: expected up to {_MOST_WORDS:,} words of 1 to {_MOST_NUMBERS:,} numbers in "
            f"the first line, received {header[0][:60].decode().strip()!r}. Download it again."
        )
    return count, dimension


def _text_rows(
    stream: BinaryIO, path: Path, dimension: int, *, line: int
) -> Iterator[tuple[str, np.ndarray]]:
    for number, text in enumerate(iter(lambda: stream.readline(_LONGEST_LINE), b""), start=line):
        if (row := _parsed(text, dimension)) is None:
            raise ValueError(
                f"{path}:{number}: expected a word and {max(dimension, 1)} numbers, received "
                f"{text[:60].decode(errors='replace')!r}."
            )
        yield row


def _parsed(line: bytes, dimension: int) -> tuple[str, np.ndarray] | None:
    """The word, which may contain spaces, and its numbers; None if the line is something else."""
    word, *numbers = line.rstrip(b" \r\n").rsplit(b" ", dimension)
    if not word or len(numbers) != dimension or not dimension:
        return None
    try:
        with np.errstate(over="ignore"):  # infinity is refused with its word
            return word.decode(errors="replace"), np.array(numbers).astype(np.float32)
    except ValueError:
        return None


def _binary_rows(
    stream: BinaryIO, path: Path, dimension: int, count: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Word, space, little-endian float32 numbers; word2vec.c ends each row in a line feed."""
    for number in range(1, count + 1):
        characters: list[bytes] = []
        while (character := stream.read(1)) not in (b" ", b"") and len(characters) < _LONGEST_WORD:
            characters.append(character)
        word = b"".join(characters).lstrip(b"\n").decode(errors="replace")
        numbers = stream.read(4 * dimension)
        if len(numbers) < 4 * dimension or character != b" ":
            raise ValueError(
                f"{path}: expected {count} words of {dimension} binary numbers, found the end or "
                f"other bytes in word {number} ({word[:40]!r}). Download it again."
            )
        yield word, np.frombuffer(numbers, "<f4")
