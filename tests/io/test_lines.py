from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from use_st5.io.lines import LongLine, read_lines, read_text


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("\ufeffa\u2028b\r\nc\x85d\n\n\x0ce\rf", ["a\u2028b", "c\x85d", "", "\x0ce\rf"]),
        ("a\n\ufeffb\n", ["a", "\ufeffb"]),
        ("", []),
    ],
)
def test_lines_end_only_at_line_feeds(
    content: str, lines: list[str], pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(pack(content.encode()))
    assert [*read_lines(path)] == [*enumerate((line.encode() for line in lines), start=1)]


def test_a_cut_off_gzip_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    whole = gzip.compress(b"".join(b"%d\n" % (i * 7919) for i in range(50_000)))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"a\.gz: expected a complete gzip file, .*line \d+"):
        list(read_lines(path))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("text", ["a\nb\n", "\u0444\u0443\n\u0442\n" * 9])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_named_with_the_remedy(
    encoding: str, text: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(pack(text.encode(encoding)))
    name = "UTF-16BE" if encoding == "utf-16-be" else "UTF-16LE"
    with pytest.raises(ValueError, match=f"received UTF-16.*iconv -f {name} "):
        list(read_lines(path))


def test_a_nul_byte_alone_is_not_utf16(tmp_path: Path) -> None:
    (path := tmp_path / "a.txt").write_bytes(b"a\0b\n")
    assert list(read_lines(path)) == [(1, b"a\0b")]


def test_carriage_returns_alone_are_named_with_the_remedy(tmp_path: Path) -> None:
    (path := tmp_path / "a.txt").write_bytes(b"one\rtwo\r")
    with pytest.raises(ValueError, match=r"end in a line feed: tr '\\r' '\\n' <"):
        list(read_lines(path))
    for content in (b"one\r", b"one\rstill one\n"):  # One line.
        path.write_bytes(content)
        assert len(list(read_lines(path))) == 1


def test_a_line_without_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as stream:
        stream.write(b"a\n")
        stream.truncate(10_000_000_000)  # sparse: ten gigabytes without data
    with pytest.raises(ValueError, match=r"a\.txt:2: a line of more than 67,108,864 bytes"):
        list(read_lines(path))


def test_text_is_decoded_out_of_plain_and_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for content in (text := "\ufeffcaf\u00e9\r\n\nb".encode(), gzip.compress(text)):
        path.write_bytes(content)
        assert list(read_text(path)) == [(1, "caf\u00e9"), (2, ""), (3, "b")]
    path.write_bytes(gzip.compress(b"a\ncaf\xe9"))
    assert list(read_text(path, "latin-1")) == [(1, "a"), (2, "caf\u00e9")]
    with pytest.raises(ValueError, match=r"a\.txt:2: expected UTF-8, received 0xe9"):
        list(read_text(path))
    path.write_bytes(b"a\n\0")
    with pytest.raises(ValueError, match=r"a\.txt:2: expected a line of text, .* a NUL byte"):
        list(read_text(path))


@pytest.mark.parametrize("end", [b"", b"\nafter"])
def test_a_line_that_is_too_long_may_be_skipped(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"before\n" + b"x" * 3_000_000 + end)
    lines = [*read_lines(path, longest=10, skip_long=True)]
    assert [(number, line) for number, line in lines if number != 2] == [
        (1, b"before"),
        *([(3, b"after")] if end else []),
    ]
    assert isinstance(lines[1][1], LongLine)
    assert lines[1][1] == b"x" * 11
