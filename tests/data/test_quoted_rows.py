"""Rows of quoted fields, and quotes that are never closed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from use_st5.data.quoted_rows import quoted_rows
from use_st5.evaluation.multilingual_sts import read_stsb_multi_mt


def rows(*lines: str) -> list[tuple[int, list[str] | str]]:
    found = quoted_rows((f"{line}\n" for line in lines), where="f")
    return [(n, str(row) if isinstance(row, csv.Error) else row) for n, row in found]


def test_a_row_may_go_on_over_lines() -> None:
    assert rows("a,b", '"c', 'd, ""e""",f', "g,h") == [
        (1, ["a", "b"]),
        (2, ["c\nd, " + '"e"', "f"]),
        (4, ["g", "h"]),
    ]


def test_each_line_of_a_broken_row_is_one() -> None:
    found = rows("a,b", '"c', 'd" e', "g,h")
    assert found[0] == (1, ["a", "b"])
    assert [number for number, row in found[1:3] if "after '\"'; a row in lines 2 to 3" in row] == [
        2,
        3,
    ]
    assert found[3:] == [(4, ["g", "h"])]


@pytest.mark.parametrize(
    ("head", "inside", "last", "message"),
    [
        (
            "a",
            ["some words"] * 1001,
            'end"',
            "f:2: .* more than 1,000 lines, .* line 1004 closes",
        ),
        ("a", ["w " * 30_000] * 3, 'end"', "f:2: .* more than 131,072 char.* line 6 closes"),
        ("a,b,c", ["d,e,f"] * 10, 'g",h,i', "f:2: .* look like rows, .* line 13 closes"),
        ("a,b", ["d,e"] * 20, 'g",h', "f:2: .* look like rows, .* line 23 closes"),
        ("a,b", ["d,e"] * 20, "g,h", "f:2: .* no line until the last one .23. closes it"),
        ("a", ["word"] * 10, 'g" h', "f:2: .* error in line 13 .* expected after"),
        ("a", ["word"] * 10, "g", "f:2: .* error in line 13 .unexpected end of data"),
    ],
)
def test_a_quote_over_many_lines_is_refused(
    head: str, inside: list[str], last: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rows(head, '"open', *inside, last)


def test_a_list_of_places_is_no_table() -> None:
    """Each line has one comma, as in a table of two columns, but too few lines prove it."""
    places = "\n".join(["Berlin, Germany", "Paris, France"] * 6)
    assert rows("a,b", *f'"{places}",c'.split("\n"))[1] == (2, [places, "c"])


def test_sets_of_sts_are_read_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "stsb.csv"
    path.write_text('"A man\nruns.",He moves.,4.5\n"A dog,A cat,1\n' + "a,b,1\n" * 30)
    with pytest.raises(ValueError, match=r"stsb\.csv:3: .* look like rows, and no line"):
        read_stsb_multi_mt(path)
