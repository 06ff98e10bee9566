from __future__ import annotations

from pathlib import Path

import pytest

from use_st5.evaluation._text_files import (
    numbered_lines,
    parse_score,
    read_columns,
    read_side_by_side,
    split_fields,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.tsv"


def test_numbers_count_blank_lines(file: Path) -> None:
    file.write_text("a\n\n \t\nb\n")
    assert list(numbered_lines(file)) == [(1, "a"), (4, "b")]


def test_side_by_side(file: Path) -> None:
    other = file.with_name("other.tsv")
    file.write_text("a\n\nb\n")
    other.write_text("1\n2\n3\n")
    assert read_side_by_side(file, other) == [(1, "a", "1"), (2, "", "2"), (3, "b", "3")]
    other.write_text("1\n2\n")
    assert read_side_by_side(file, other, first=2) == [(1, "a", "1"), (2, "", "2")]
    for paths in ((file, other), (other, file)):
        with pytest.raises(ValueError, match=r"other\.tsv:3: .* line 3 of file\.tsv, .* the end"):
            read_side_by_side(*paths)


def test_fields(file: Path) -> None:
    assert split_fields(file, 7, 'a\t"b\t\t', at_least=4) == ["a", '"b', "", ""]
    with pytest.raises(ValueError, match=r"file\.tsv:7: expected at least 3 .* received 2: 'a"):
        split_fields(file, 7, "a\tb", at_least=3)


def test_columns_by_name(file: Path) -> None:
    file.write_text("id\tsecond\tfirst\n\n1\tb\ta\n2\td\tc\n")
    assert list(read_columns(file, ("first", "second"))) == [(3, ["a", "b"]), (4, ["c", "d"])]


def test_columns_that_are_missing(file: Path) -> None:
    file.write_text("id\tsecond\tfirst\n1\tb\ta\n2\td\n")
    columns = read_columns(file, ("first",))
    assert next(columns) == (2, ["a"])
    with pytest.raises(ValueError, match=r"file\.tsv:3: expected 3 tab-separated fields, .* 2"):
        next(columns)
    file.write_text("id\tsecond\tfirst\n1\t\tb\ta\n")
    with pytest.raises(ValueError, match=r"file\.tsv:2: expected 3 tab-separated fields, .* 4"):
        list(read_columns(file, ("first",)))
    missing = r"file\.tsv:1: expected the columns gold, id; gold missing in .*'id'"
    with pytest.raises(ValueError, match=missing):
        list(read_columns(file, ("gold", "id")))
    file.write_text("")
    with pytest.raises(ValueError, match="id missing in the header"):
        list(read_columns(file, ("id",)))


def test_scores(file: Path) -> None:
    assert parse_score(file, 1, " 4.250\r") == 4.25
    for text in ("", "high", "nan", "inf", "4,2", "-0.1", "5.01"):
        message = rf"file\.tsv:3: expected a score from 0 to 5, received '{text}'"
        with pytest.raises(ValueError, match=message):
            parse_score(file, 3, text)
