"""Vectors in memory and on disk: each text is encoded once, even if the process died."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from use_st5.encode import vector_store as module
from use_st5.encode.vector_store import VectorCache, VectorStore, as_cache


def toy(sentences: list[str]) -> np.ndarray:
    """Three numbers that depend only on the sentence."""
    digests = [hashlib.md5(each.encode("utf-8", "surrogatepass")).digest() for each in sentences]
    return np.array([list(digest[:3]) for digest in digests], np.float32) / 255


class Counting:
    """The toy encoder; it records the sentences of each call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, sentences: list[str]) -> np.ndarray:
        self.calls.append(sentences)
        return toy(sentences)


def test_each_sentence_once_and_rows_in_order() -> None:
    encode = Counting()
    embed = VectorCache(encode)
    assert embed.dimension is None
    np.testing.assert_array_equal(embed(["a", "b", "a"]), toy(["a", "b", "a"]))
    embed(["a", "b"])[:] = 0  # What is given out is the caller's.
    np.testing.assert_array_equal(embed(["c", "b", "a", "d"]), toy(["c", "b", "a", "d"]))
    assert encode.calls == [["a", "b"], ["c", "d"]]
    assert embed.dimension == 3
    assert as_cache(embed) is embed
    np.testing.assert_array_equal(as_cache(toy)(["a"]), toy(["a"]))
    with pytest.raises(ValueError, match="received none"):
        embed([])


def test_sentences_that_look_alike_are_different(tmp_path: Path) -> None:
    alike = ["a", "a ", "A", "", "\u00e9", "e\u0301", "\ud800", "?", "a\0", "a\nb", "a\r", "c\x85"]
    for _ in range(2):
        np.testing.assert_array_equal(VectorCache(toy, store=tmp_path)(alike), toy(alike))


@pytest.mark.parametrize(
    ("given", "expected"),
    [(np.float64, np.float64), (np.float16, np.float32), (int, np.float32), (list, np.float32)],
)
def test_dtype(tmp_path: Path, given: type, expected: type) -> None:
    def encode(sentences: list[str]) -> np.ndarray | list:
        rows = [[len(each), 1] for each in sentences]
        return rows if given is list else np.array(rows).astype(given)

    for _ in range(2):  # the second time from the store
        vectors = VectorCache(encode, store=tmp_path)(["a", "bcd"])
        assert vectors.dtype == expected
        assert vectors.tolist() == [[1, 1], [3, 1]]


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda s: toy(s)[1:], r"shape \[2, dim\], received \[1, 3\]"),
        (lambda s: toy(s)[None], r"received \[1, 2, 3\]"),
        (lambda s: np.ones((len(s), 0)), r"received \[2, 0\]"),
        (lambda s: [[float("nan") if x == "b" else 0.0] for x in s], "NaN or infinity for 'b'"),
        (lambda s: np.full((2, 2), np.inf), "NaN or infinity for 'a'"),
        (lambda s: [[0.0] * (1 + (x == "b")) for x in s], "inhomogeneous"),
        (lambda s: [["one", "two"]] * len(s), "could not convert"),
    ],
)
def test_wrong_vectors_are_refused(tmp_path: Path, encode: Callable, message: str) -> None:
    embed = VectorCache(encode, store=tmp_path)
    with pytest.raises(ValueError, match=message):
        embed(["a", "b"])
    assert embed.dimension is None
    assert not list(tmp_path.iterdir())


def test_vectors_of_another_dimension_are_refused(tmp_path: Path) -> None:
    VectorCache(toy, store=tmp_path)(["a"])
    with pytest.raises(ValueError, match=r"shape \[1, 3\], received \[1, 2\]"):
        VectorCache(lambda s: toy(s)[:, :2], store=tmp_path)(["b"])


def test_a_second_cache_on_a_store_encodes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "new" / "store"
    first = VectorCache(toy, store=store)
    first(["a", "b"])
    encode = Counting()
    second = VectorCache(encode, store=store)
    assert second.dimension == 3
    first(["c"])
    np.testing.assert_array_equal(second(["c", "a", "b"]), toy(["c", "a", "b"]))
    assert encode.calls == []
    np.testing.assert_array_equal(second(["d", "a"]), toy(["d", "a"]))
    np.testing.assert_array_equal(VectorCache(encode, store=store)(["d"]), toy(["d"]))
    assert encode.calls == [["d"]]


def test_a_store_in_float16(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, dtype="float16", chunk=2)
    assert store.rows([]).shape == (0, 0)
    encode = Counting()
    assert store.extend(encode, ["a", "bb", "a", "caa"]) == 3
    assert encode.calls == [["a", "bb"], ["caa"]]
    again = VectorStore(tmp_path)
    assert len(again) == 3
    assert "bb" in again
    assert "e" not in again
    assert again.rows(["bb"]).dtype == np.float16
    np.testing.assert_array_equal(again.at(again.places(["caa", "a"])), store.rows(["caa", "a"]))


class DiedError(Exception):
    """Stands for the death of the process."""


def test_an_interruption_loses_one_block(tmp_path: Path) -> None:
    def dies(sentences: list[str]) -> np.ndarray:
        if "c" in sentences:
            raise DiedError
        return toy(sentences)

    with pytest.raises(DiedError):
        VectorStore(tmp_path, chunk=2).extend(dies, list("abcd"))
    encode = Counting()
    np.testing.assert_array_equal(
        VectorCache(encode, store=tmp_path)(list("abcd")), toy(list("abcd"))
    )
    assert encode.calls == [["c", "d"]]


def test_vectors_without_keys_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = module.atomic_path

    def dies_at_keys(path: Path):  # noqa: ANN202
        if path.name.startswith("keys-"):
            raise DiedError
        return whole(path)

    with monkeypatch.context() as patched:
        patched.setattr(module, "atomic_path", dies_at_keys)
        with pytest.raises(DiedError):
            VectorCache(toy, store=tmp_path)(["a", "b"])
    assert [path.name.split("-")[0] for path in tmp_path.iterdir()] == ["vectors"]
    encode = Counting()
    # The vectors that were left behind are never used for the keys that the next process writes.
    np.testing.assert_array_equal(VectorCache(encode, store=tmp_path)(["c", "d"]), toy(["c", "d"]))
    np.testing.assert_array_equal(VectorCache(encode, store=tmp_path)(["d", "a"]), toy(["d", "a"]))
    assert encode.calls == [["c", "d"], ["a"]]


@pytest.mark.process
def test_while_another_process_writes_new_vectors_stay_in_memory(
    tmp_path: Path, written_elsewhere: Callable[..., int]
) -> None:
    written_elsewhere(tmp_path, inside=True)
    np.testing.assert_array_equal(VectorCache(toy, store=tmp_path)(["a"]), toy(["a"]))
    assert not list(tmp_path.glob("*.npy"))


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("keys", b"not an array"),
        ("keys", np.zeros((3, 16), np.uint8)),
        ("keys", np.zeros((2, 16), np.float32)),
        ("vectors", None),
        ("vectors", b"\x93NUMPY"),
        ("vectors", np.zeros(2, np.float32)),
        ("vectors", np.zeros((1, 3), np.float32)),
        ("vectors", np.zeros((2, 3), np.int64)),
    ],
)
def test_a_damaged_store(tmp_path: Path, part: str, content: np.ndarray | bytes | None) -> None:
    VectorCache(toy, store=tmp_path)(["a", "b"])
    (path,) = tmp_path.glob(f"{part}-*.npy")
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(ValueError, match=r"keys-\w+\.npy: expected a block"):
        VectorCache(toy, store=tmp_path)
