"""Teacher vectors: each sentence once, resumed, checked."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from use_st5.distillation.teacher_vectors import TeacherVectors


def _encode(sentences: list[str]) -> np.ndarray:
    return np.array([[len(s), s.count("a")] for s in sentences], np.float32)


def test_each_sentence_is_encoded_once_over_several_runs(tmp_path: Path) -> None:
    asked: list[str] = []

    def encode(sentences: list[str]) -> np.ndarray:
        asked.extend(sentences)
        return _encode(sentences)

    assert TeacherVectors(tmp_path).extend(encode, ["a", "bb", "a", "caa"], shard_size=2) == 3
    again = TeacherVectors(tmp_path)
    assert again.extend(encode, ["bb", "dada", "caa"]) == 1
    assert asked == ["a", "bb", "caa", "dada"]
    assert len(again) == 4
    assert "dada" in again
    assert "e" not in again
    np.testing.assert_array_equal(again["caa"], [3, 2])
    rows = list(TeacherVectors(tmp_path).examples(["dada", "a"]))
    assert [row["sentence"] for row in rows] == ["dada", "a"]
    np.testing.assert_array_equal([row["teacher"] for row in rows], [[4, 2], [1, 1]])


def test_a_stop_in_the_middle_keeps_whole_shards(tmp_path: Path) -> None:
    def fails_later(sentences: list[str]) -> np.ndarray:
        if "stop" in sentences:
            raise KeyboardInterrupt
        return _encode(sentences)

    with pytest.raises(KeyboardInterrupt):
        TeacherVectors(tmp_path).extend(fails_later, ["a", "b", "stop", "c"], shard_size=2)
    kept = TeacherVectors(tmp_path)
    assert len(kept) == 2
    assert kept.extend(_encode, ["a", "b", "c"]) == 1


@pytest.mark.process
def test_two_processes_do_not_write_over_each_other(
    tmp_path: Path, written_elsewhere: Callable[..., int]
) -> None:
    first, second = TeacherVectors(tmp_path), TeacherVectors(tmp_path)
    assert first.extend(_encode, ["a", "b"]) == 2
    assert second.extend(_encode, ["b", "c"]) == 1  # what the first wrote meanwhile is seen
    assert len(TeacherVectors(tmp_path)) == 3
    written_elsewhere(tmp_path, inside=True)
    with pytest.raises(BlockingIOError):
        first.extend(_encode, ["d"])
    assert first.extend(_encode, ["a"]) == 0


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((1, 2)), r"\[2, dim\]"),
        (np.full((2, 2), np.nan), "finite"),
        (np.full((2, 2), 1e6), "float16's range"),
    ],
)
def test_a_wrong_teacher_is_refused(tmp_path: Path, vectors: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TeacherVectors(tmp_path).extend(lambda _: vectors, ["a", "b"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sentence", ["a\nb", "a\n"])
def test_line_feeds_are_refused(tmp_path: Path, sentence: str) -> None:
    with pytest.raises(ValueError, match="line feeds"):
        TeacherVectors(tmp_path).extend(_encode, [sentence])


def test_other_ends_of_lines_belong_to_the_sentence(tmp_path: Path) -> None:
    sentences = ["a\u2028b", "c\x85", "d\r", ""]
    TeacherVectors(tmp_path).extend(_encode, sentences)
    assert all(sentence in TeacherVectors(tmp_path) for sentence in sentences)


def test_what_a_kill_leaves_behind_is_no_shard(tmp_path: Path) -> None:
    TeacherVectors(tmp_path).extend(_encode, ["a", "b"])
    (tmp_path / ".000001.0123456789ab.npy").write_bytes(b"half")
    (tmp_path / ".000001.0123456789ab.txt").write_text("half")
    assert TeacherVectors(tmp_path).extend(_encode, ["a", "c"]) == 1
    assert len(TeacherVectors(tmp_path)) == 3


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    TeacherVectors(tmp_path).extend(_encode, ["a", "b"])
    (tmp_path / "000000.txt").write_text("a\n")
    with pytest.raises(ValueError, match=r"000000\.npy.*000000\.txt"):
        TeacherVectors(tmp_path)


def _saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("000000.npy", b"", "expected an array of NumPy"),
        ("000000.npy", b"\x93NUMPY\x01\x00garbage", "expected an array of NumPy"),
        ("000000.npy", _saved(np.ones((9, 2), np.float16))[:140], "expected an array of NumPy"),
        ("000000.npy", _saved(np.ones((2, 2), np.int64)), "expected floats .* received .*int64"),
        ("000000.npy", _saved(np.ones(2, np.float16)), r"expected floats .* received .*\(2,\)"),
        ("000001.npy", _saved(np.ones((1, 3), np.float16)), "expected vectors of 2 .* received 3"),
        ("000000.txt", b"a\n\xff\n", "expected UTF-8 text"),
        ("000000.txt", None, "expected the sentences of the vectors"),
    ],
)
def test_damage_is_one_error_that_names_the_file(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    TeacherVectors(tmp_path).extend(_encode, ["a", "b"])
    path = tmp_path / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=rf"{name}: {message}"):
        TeacherVectors(tmp_path)
