from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from use_st5.data._lines import read_lines


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffa\u2028b\r\nc\x85d\n\n\x0ce\rf".encode())
    assert [(number, line.decode()) for number, line in read_lines(path)] == [
        (1, "a\u2028b"),
        (2, "c\x85d"),
        (3, ""),
        (4, "\x0ce\rf"),
    ]


def test_a_mark_inside_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("a\n\ufeffb\n".encode())
    assert list(read_lines(path)) == [(1, b"a"), (2, "\ufeffb".encode())]


def test_gzip_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    packed, plain = tmp_path / "a.txt", tmp_path / "b.gz"
    packed.write_bytes(gzip.compress(b"one\ntwo"))
    plain.write_bytes(b"one\ntwo")
    assert list(read_lines(packed)) == list(read_lines(plain)) == [(1, b"one"), (2, b"two")]


def test_a_cut_off_gzip_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    whole = gzip.compress(b"".join(b"%d\n" % (i * 7919) for i in range(50_000)))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"a\.gz: the gzip file is damaged or cut off after line"):
        list(read_lines(path))


def test_utf16_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text", encoding="utf-16")
    with pytest.raises(ValueError, match="received UTF-16.*iconv -f UTF-16"):
        list(read_lines(path))


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    assert list(read_lines(path)) == []
