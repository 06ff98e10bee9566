"""`Embedder`: each sentence once, also after the process died."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from use_st5 import embedder as module
from use_st5.embedder import Embedder, as_embedder


def toy(sentences: list[str]) -> np.ndarray:
    """Three numbers that depend on the sentence alone."""
    digests = [hashlib.md5(each.encode("utf-8", "surrogatepass")).digest() for each in sentences]
    return np.array([list(digest[:3]) for digest in digests], np.float32) / 255


class Counting:
    """The toy encoder; it remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, sentences: list[str]) -> np.ndarray:
        self.calls.append(sentences)
        return toy(sentences)


def test_each_sentence_once_and_rows_in_order() -> None:
    encode = Counting()
    embed = Embedder(encode)
    assert embed.dimension is None
    assert embed.unknown(["a", "b", "a"]) == 2
    np.testing.assert_array_equal(embed(["a", "b", "a"]), toy(["a", "b", "a"]))
    np.testing.assert_array_equal(embed(["c", "b", "a", "d"]), toy(["c", "b", "a", "d"]))
    np.testing.assert_array_equal(embed(("d", "d")), toy(["d", "d"]))
    assert encode.calls == [["a", "b"], ["c", "d"]]
    assert (embed.encoded, embed.dimension) == (4, 3)
    assert embed.unknown(["a", "e"]) == 1


def test_sentences_that_look_alike_are_different() -> None:
    alike = ["a", "a ", "A", "", "\u00e9", "e\u0301", "\ud800", "?", "a\0"]
    np.testing.assert_array_equal(Embedder(Counting())(alike), toy(alike))


def test_what_is_given_out_is_the_callers() -> None:
    embed = Embedder(toy)
    embed(["a", "b"])[:] = 0
    np.testing.assert_array_equal(embed(["a", "b"]), toy(["a", "b"]))


def test_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 3)
    encode, reported = Counting(), []
    embed = Embedder(encode, on_encoded=reported.append)
    sentences = list("abcdefgh")
    np.testing.assert_array_equal(embed(sentences[::-1] + sentences), toy(list("hgfedcbaabcdefgh")))
    assert encode.calls == [["h", "g", "f"], ["e", "d", "c"], ["b", "a"]]
    assert reported == [3, 3, 2]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.float16, np.float32),
        (int, np.float32),
    ],
)
def test_dtype(tmp_path: Path, given: type, expected: type) -> None:
    def encode(sentences: list[str]) -> np.ndarray:
        return np.array([[len(each), 1] for each in sentences]).astype(given)

    for _ in range(2):  # the second time from the store
        vectors = Embedder(encode, store=tmp_path)(["a", "bcd"])
        assert vectors.dtype == expected
        assert vectors.tolist() == [[1, 1], [3, 1]]


def test_lists_are_taken() -> None:
    assert Embedder(lambda s: [[len(x), 0.5] for x in s])(["ab"]).tolist() == [[2, 0.5]]


def test_as_embedder_shares() -> None:
    embed = Embedder(toy)
    assert as_embedder(embed) is embed
    np.testing.assert_array_equal(as_embedder(toy)(["a"]), toy(["a"]))


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda s: toy(s)[1:], r"expected an array of shape \[2, dim\], received \[1, 3\]"),
        (lambda s: toy(s)[None], r"received \[1, 2, 3\]"),
        (lambda s: np.ones(len(s)), r"received \[2\]"),
        (lambda s: np.ones((len(s), 0)), r"received \[2, 0\]"),
        (lambda s: [[float("nan") if x == "b" else 0.0] for x in s], "NaN or infinity for 'b'"),
        (lambda s: [[0.0] * (1 + len(x + "b") % 2 + (x == "b")) for x in s], "numbers in an array"),
        (lambda s: [["one", "two"]] * len(s), r"numbers in an array of shape \[2, dim\]"),
        (lambda s: [[0.0, float("inf") if x == "a" else 0.0] for x in s], "infinity for 'a'"),
    ],
)
def test_what_is_refused(tmp_path: Path, encode: Callable, message: str) -> None:
    embed = Embedder(encode, store=tmp_path)
    with pytest.raises(ValueError, match=message):
        embed(["a", "b"])
    assert embed.unknown(["a", "b"]) == 2
    assert not list(tmp_path.iterdir())


def test_refused_in_use() -> None:
    with pytest.raises(ValueError, match="Expected sentences to embed, received none"):
        Embedder(toy)([])
    embed = Embedder(lambda s: np.ones((len(s), len(s[0]))))
    embed(["abc"])
    with pytest.raises(ValueError, match="expected vectors of 3 numbers as before, received 2"):
        embed(["ab"])


def test_a_second_embedder_on_a_store_encodes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "new" / "store"
    first = Embedder(toy, store=store)
    first(["a", "b"])
    first(["c"])
    encode = Counting()
    second = Embedder(encode, store=store)
    assert second.dimension == 3
    np.testing.assert_array_equal(second(["c", "a", "b"]), toy(["c", "a", "b"]))
    assert (encode.calls, second.encoded) == ([], 0)
    np.testing.assert_array_equal(second(["d", "a"]), toy(["d", "a"]))
    np.testing.assert_array_equal(Embedder(encode, store=store)(["d"]), toy(["d"]))
    assert encode.calls == [["d"]]


class DiedError(Exception):
    """Stands for the death of the process."""


def test_death_of_the_encoder_loses_the_chunk_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", 2)

    def dies(sentences: list[str]) -> np.ndarray:
        if "c" in sentences:
            raise DiedError
        return toy(sentences)

    with pytest.raises(DiedError):
        Embedder(dies, store=tmp_path)(list("abcd"))
    encode = Counting()
    np.testing.assert_array_equal(Embedder(encode, store=tmp_path)(list("abcd")), toy(list("abcd")))
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
            Embedder(toy, store=tmp_path)(["a", "b"])
    assert [path.name.split("-")[0] for path in tmp_path.iterdir()] == ["vectors"]
    encode = Counting()
    # What was left behind is never taken for the vectors of what the next process writes.
    np.testing.assert_array_equal(Embedder(encode, store=tmp_path)(["c", "d"]), toy(["c", "d"]))
    np.testing.assert_array_equal(Embedder(encode, store=tmp_path)(["d", "a"]), toy(["d", "a"]))
    assert encode.calls == [["c", "d"], ["a"]]


def test_two_processes_at_once_do_not_mix_their_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Embedder(toy, store=tmp_path), Embedder(toy, store=tmp_path)
    whole = module.atomic_path

    def interrupted_at_keys(path: Path):  # noqa: ANN202
        if path.name.startswith("keys-"):
            monkeypatch.setattr(module, "atomic_path", whole)
            second(["c", "d"])
        return whole(path)

    monkeypatch.setattr(module, "atomic_path", interrupted_at_keys)
    first(["a", "b"])
    encode = Counting()
    np.testing.assert_array_equal(Embedder(encode, store=tmp_path)(list("abcd")), toy(list("abcd")))
    assert encode.calls == []


def damage(store: Path, kind: str, array: np.ndarray | bytes | None) -> None:
    (path,) = store.glob(f"{kind}-*.npy")
    if array is None:
        path.unlink()
    elif isinstance(array, bytes):
        path.write_bytes(array)
    else:
        np.save(path, array)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("keys", b""),
        ("keys", b"not an array"),
        ("keys", np.zeros((3, 16), np.uint8)),
        ("keys", np.zeros((2, 8), np.uint8)),
        ("vectors", None),
        ("vectors", b"\x93NUMPY"),
        ("vectors", np.zeros(2, np.float32)),
        ("vectors", np.zeros((1, 3), np.float32)),
    ],
)
def test_damaged_store(tmp_path: Path, kind: str, content: np.ndarray | bytes | None) -> None:
    Embedder(toy, store=tmp_path)(["a", "b"])
    damage(tmp_path, kind, content)
    with pytest.raises(
        ValueError, match=r"keys-\w+\.npy: expected keys.*Remove the folder"
    ) as info:
        Embedder(toy, store=tmp_path)
    assert str(tmp_path) in str(info.value)


def test_cut_off_vectors(tmp_path: Path) -> None:
    Embedder(toy, store=tmp_path)(["a", "b"])
    (path,) = tmp_path.glob("vectors-*.npy")
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="Remove the folder"):
        Embedder(toy, store=tmp_path)


def test_store_of_another_model(tmp_path: Path) -> None:
    Embedder(toy, store=tmp_path)(["a"])
    for path in tmp_path.glob("keys-*.npy"):
        np.save(path.with_name("keys-0.npy"), np.load(path))
        np.save(path.with_name("vectors-0.npy"), np.zeros((1, 4)))
    with pytest.raises(ValueError, match="as long as the others"):
        Embedder(toy, store=tmp_path)
    with pytest.raises(ValueError, match="expected vectors of 3 numbers as before, received 2"):
        store = tmp_path / "other"
        Embedder(toy, store=store)(["a"])
        Embedder(lambda s: toy(s)[:, :2], store=store)(["b"])


@pytest.mark.process
def test_store_after_a_killed_process(tmp_path: Path, fresh_python: Callable[..., str]) -> None:
    code = f"""
import os, subprocess, sys
import numpy as np
child = '''
import os, signal
import numpy as np
from use_st5 import embedder
embedder._CHUNK = 2
def encode(sentences):
    if "e" in sentences:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.array([[ord(each)] for each in sentences], np.float32)
embedder.Embedder(encode, store={str(tmp_path / "store")!r})(list("abcdef"))
'''
print(subprocess.run([sys.executable, "-c", child]).returncode)
"""
    assert fresh_python("-c", code).strip() == "-9"
    encode = Counting()
    embed = Embedder(lambda s: encode(s)[:, :1], store=tmp_path / "store")
    assert embed(list("abcd")).ravel().tolist() == list(map(ord, "abcd"))
    assert encode.calls == []
