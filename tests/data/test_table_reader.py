from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from use_st5.data.table_reader import TableReader


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv_quotes_commas_and_fields_over_several_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'q,a\r\n"one, ""two""","line 1\r\nline 2"\r\nthree,four\r\n')
    assert list(TableReader(path, {"question": "q", "answer": "a"})) == [
        {"question": 'one, "two"', "answer": "line 1\nline 2"},
        {"question": "three", "answer": "four"},
    ]


def test_csv_places_are_those_of_the_first_line_of_a_record(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", b'q,a\n"1\n2",x\ngood,y\nonly one\n"bad"quote,z\n\n\xff,w\nlast,v\n'
    )
    reader = TableReader(path, {"q": "q", "a": "a"}, max_malformed=1)
    assert [row["a"] for row in reader] == ["x", "y", "v"]
    places = [offence.removeprefix(f"{path}:").split(":")[0] for offence in reader.report.offences]
    assert places == ["5", "6", "8"]
    assert reader.report.offences[0].endswith("1 fields, expected 2")
    assert "invalid csv" in reader.report.offences[1]
    assert reader.report.offences[2].endswith("invalid utf-8")
    assert reader.report.skipped == {"blank": 1}


def test_a_quote_that_is_never_closed_is_one_malformed_record(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'good,x\n"open,y\nmore,z\n')
    reader = TableReader(path, {"q": 0, "a": 1}, max_malformed=1)
    assert list(reader) == [{"q": "good", "a": "x"}]
    assert reader.report.offences[0].startswith(f"{path}:2: invalid csv")


def test_tsv_has_no_quoting(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", '"a\tb"c\n"d"\te\n')
    assert list(TableReader(path, {"x": 0, "y": 1})) == [
        {"x": '"a', "y": 'b"c'},
        {"x": '"d"', "y": "e"},
    ]


def test_header_can_be_skipped_when_positions_are_used(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "first\tsecond\n1\t2\n")
    assert list(TableReader(path, {"x": 1}, header=True)) == [{"x": "2"}]
    assert list(TableReader(path, {"x": 1})) == [{"x": "second"}, {"x": "2"}]


def test_alternative_names_are_tried_in_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "B\tA\n1\t2\n")
    assert list(TableReader(path, {"x": ("a", "b")})) == [{"x": "2"}]
    assert list(TableReader(path, {"x": ("c", "b")})) == [{"x": "1"}]


def test_of_two_columns_of_one_name_the_first_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "x\tX\tx\n1\t2\t3\n")
    assert list(TableReader(path, {"x": "x"})) == [{"x": "1"}]


def test_optional_columns_may_lack_text_or_be_absent(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "w\td\nword\tmeaning\n")
    columns = {"word": "w", "definition": "d", "example": "e"}
    assert list(TableReader(path, columns, optional=("example",))) == [
        {"word": "word", "definition": "meaning", "example": ""}
    ]


def test_jsonl_null_counts_as_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": "x", "b": null}\n{"a": null, "b": "y"}\n')
    reader = TableReader(path, {"a": "a", "b": "b"}, optional=("b",), max_malformed=1)
    assert list(reader) == [{"a": "x", "b": ""}]
    assert reader.report.offences == [f"{path}:2: no text in 'a'"]


def test_half_a_surrogate_pair_is_malformed(tmp_path: Path) -> None:
    lines = [r'{"a": "whole \ud83d\ude00"}', r'{"a": "half \ud83d"}', r'{"a": "a path, C:\\udf00"}']
    path = write(tmp_path / "a.jsonl", "\n".join(lines))
    reader = TableReader(path, {"a": "a"}, max_malformed=1)
    assert [row["a"] for row in reader] == ["whole \U0001f600", r"a path, C:\udf00"]
    assert reader.report.offences[0].startswith(f"{path}:2: half of a surrogate pair")


def test_malformed_rows_are_logged_with_file_and_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": "x"}\n{"a": ""}\n')
    list(TableReader(path, {"a": "a"}, max_malformed=1))
    assert f"{path}:2: no text in 'a'" in caplog.text


def test_encoding_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "caf\u00e9\tb\n".encode("latin-1"))
    assert list(TableReader(path, {"x": 0}, encoding="latin-1")) == [{"x": "caf\u00e9"}]


def test_the_format_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "sts-dev.csv", "a, b\tc\n")
    assert list(TableReader(path, {"x": 0}, file_format="tsv")) == [{"x": "a, b"}]
    with pytest.raises(ValueError, match="'jsonl', 'tsv', 'csv' or 'parquet', received"):
        list(TableReader(path, {"x": 0}, file_format="xml"))


def test_wrong_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"a": "x"}\n')
    with pytest.raises(ValueError, match="positions are for tsv and csv"):
        list(TableReader(path, {"a": 0}))
    with pytest.raises(ValueError, match="names need a header line"):
        TableReader(path, {"a": "a"}, header=False)
    with pytest.raises(ValueError, match="at least one key"):
        TableReader(path, {})
    with pytest.raises(ValueError, match=r"optional: \['b'\] are not among \['a'\]"):
        TableReader(path, {"a": "a"}, optional=("b",))


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "big.tsv"
    with path.open("w") as file:
        file.writelines(f"sentence number {i}\t{'word ' * 40}\n" for i in range(30_000))
    assert path.stat().st_size > 6_000_000
    tracemalloc.start()
    count = sum(1 for _ in TableReader(path, {"a": 0, "b": 1}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 30_000
    assert peak < 500_000


def test_reasons_are_counted_in_bounded_memory(tmp_path: Path) -> None:
    lines = "good\n" + "".join("x\t" * (i % 300 + 1) + "x\n" for i in range(600))
    path = write(tmp_path / "a.tsv", "h\n" + lines)
    reader = TableReader(path, {"x": "h"}, max_malformed=1)
    assert list(reader) == [{"x": "good"}]
    assert reader.report.malformed_rows == 600
    assert len(reader.report.malformed) == 51
