"""Reading word vectors: the published layouts, gensim's files, and files that are damaged."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from experiments.use.transfer.word_vectors import WordVectors

WORDS = ("the", "London", "café", "n't")
VECTORS = np.array([[1, 2, 3], [-0.5, 0.25, 8], [1e-3, 0, -7], [4, 5, 6]], np.float32)


def binary(*, line_feeds: bool) -> bytes:
    rows = zip(WORDS, VECTORS, strict=True)
    end = b"\n" if line_feeds else b""
    packed = (word.encode() + b" " + struct.pack("<3f", *vector) + end for word, vector in rows)
    return b"4 3\n" + b"".join(packed)


def text(*, header: bool, end: str = "\n") -> bytes:
    lines = [f"{w} {' '.join(map(str, v))}" for w, v in zip(WORDS, VECTORS.tolist(), strict=True)]
    return "".join(line + end for line in [*(["4 3"] if header else []), *lines]).encode()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(binary(line_feeds=True), id="word2vec.c binary"),
        pytest.param(binary(line_feeds=False), id="gensim binary"),
        pytest.param(text(header=True), id="word2vec text"),
        pytest.param(text(header=True, end=" \n"), id="word2vec.c text"),
        pytest.param(text(header=False), id="GloVe"),
        pytest.param(text(header=False, end="\r\n"), id="GloVe, Windows"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_layouts(content: bytes, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / ("vectors.gz" if packed else "vectors")
    path.write_bytes(gzip.compress(content) if packed else content)
    found = WordVectors.load(path)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, VECTORS)
    assert found.vectors.dtype == np.float32
    assert WordVectors.load(path, limit=2).words == WORDS[:2]


@pytest.mark.parametrize("in_binary", [False, True])
def test_files_of_gensim(in_binary: bool, tmp_path: Path) -> None:
    keyed_vectors = pytest.importorskip("gensim.models").KeyedVectors
    made = keyed_vectors(50)
    rng = np.random.default_rng(0)
    # Ten thousand vectors contain every byte, also line feeds and spaces.
    made.add_vectors([f"w{i}" for i in range(10_000)], rng.normal(size=(10_000, 50)))
    made.save_word2vec_format(str(tmp_path / "vectors"), binary=in_binary)
    found = WordVectors.load(tmp_path / "vectors")
    assert found.words == tuple(made.index_to_key)
    np.testing.assert_array_equal(found.vectors, made.vectors)


def test_words_with_spaces_and_words_twice(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text(", 1 2\n. . . 3 4\nat name@domain.com 5 6\n, 7 8\n")
    found = WordVectors.load(path)
    assert found.words == (",", ". . .", "at name@domain.com")
    np.testing.assert_array_equal(found.vectors, [[1, 2], [3, 4], [5, 6]])


def test_lower_case_tokens_find_cased_words() -> None:
    vectors = WordVectors(("US", "us", "London", "LONDON"), np.eye(4))
    np.testing.assert_array_equal(vectors.places(["us", "london", "paris", "US"]), [1, 2, -1, 0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (text(header=True)[:-6], ":5: expected a word and 3 numbers, received \"n't 4.0"),
        (
            text(header=True).rpartition(b"n't")[0],
            "expected 4 words as its first line says, found 3",
        ),
        (binary(line_feeds=True)[:-5], "word 4"),
        (text(header=False).replace(b"0.25", b"x"), ":2: expected a word and 3 numbers"),
        (text(header=False).replace(b"0.25 ", b""), ":2: expected a word and 3 numbers"),
        (text(header=False).replace(b"0.25", b"nan"), "London"),
        (b"one word a line\nand no numbers\n", ":1: expected a word"),
        (b"\n", ":1: expected a word"),
        (text(header=False).replace(b"0.25", b"1e99"), "vectors: Expected finite .*London"),
        (b"4 1000000000000\nthe 1 2 3\n", "vectors: expected up to .* received '4 1000000000000'"),
        (b"1000000000000 3\nthe 1 2 3\n", "vectors: expected up to .* in the first line"),
        (b"9" * 9999 + b" 3\nthe 1 2 3\n", "vectors: expected up to .* received '9999"),
        (b"4 0\nthe\n", "vectors: expected up to .* received '4 0'"),
        (b"4 3\n", "vectors: expected 4 words of 3 binary numbers, found the end"),
        (b"4 3\nthe \x00\x01", "vectors: expected 4 words of 3 .* in word 1 \\('the'\\)"),
        (b"4 3\n" + bytes(10**6), "vectors: expected 4 words of 3 .* in word 1"),
        (b"", "found none"),
        (b"0 3\n", "found none"),
    ],
)
def test_damaged_files(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        WordVectors.load(path)


# The names matter: gzip writes the time, and two processes must collect tests of the same names.
@pytest.mark.parametrize(
    "content",
    [gzip.compress(text(header=False))[:-9], b"the 1 2 3\n"],
    ids=["not complete", "not gzip"],
)
def test_damaged_gzip_files(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "vectors.gz").write_bytes(content)
    with pytest.raises(ValueError, match="vectors.gz: expected a complete gzip file"):
        WordVectors.load(tmp_path / "vectors.gz")


def test_unusable_arguments(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        WordVectors.load(tmp_path / "absent")
    with pytest.raises(ValueError, match="limit"):
        WordVectors.load(tmp_path / "absent", limit=0)
    with pytest.raises(ValueError, match=r"\[2, dimension\]"):
        WordVectors(("a", "b"), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="twice"):
        WordVectors(("a", "a"), np.zeros((2, 2)))
