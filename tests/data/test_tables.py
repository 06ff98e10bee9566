"""Tables row by row, and as Arrow tables: the same rows and the same report."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from use_st5.data import tables
from use_st5.data.tables import Table, TableReader

_KEYS = ("sentence1", "sentence2", "score")
_TEXTS = (
    "a dog",
    "é",
    "日本",
    ' "',
    'x"y',
    '"q"',
    "\t",
    ",",
    "\r",
    "\x00",
    "\u2028",
    "\ufeff",
    " ",
)
_SCORES = ("1", "2.5", "-1e2", "9" * 400, "nan", " 3 ", "+4", "1_0", "x", "", ".5", "5.")
_OBJECTS = (
    *('{"sentence1": "a", "sentence2": "b", "score": 1}', '{"sentence1": 1}', "[]", " ", "{"),
    *('{"sentence1": "a", "Sentence1": "b", "sentence2": "c", "score": 1}', '{"x": 1} {"x": 1}'),
    *('{"sentence1": "a", "sentence1": "b"}', '{"SENTENCE1": "a", "sentence2": "b", "score": "2"}'),
    *('{"sentence1": "\\ud83d", "sentence2": "b", "score": 1}', '{"score": NaN}', "1"),
    '{"sentence1": "\\ud83d\\ude00", "sentence2": "b", "score": ' + "9" * 400 + "}",
)


def _line(drawn: random.Random, suffix: str) -> str:
    if suffix == "jsonl":
        return drawn.choice(_OBJECTS if drawn.random() < 0.3 else _OBJECTS[:1])
    cells = [
        "".join(drawn.choices(_TEXTS, k=2)) if drawn.random() < 0.3 else f"text {drawn.random()}"
        for _ in range(2)
    ]
    if suffix == "csv" and drawn.random() < 0.9:
        cells = [f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in cells]
    cells.append(drawn.choice(_SCORES) if drawn.random() < 0.2 else "0.5")
    return ("\t" if suffix == "tsv" else ",").join(cells[: drawn.choice((3, 3, 3, 3, 2))])


def _content(seed: int, suffix: str) -> bytes:
    """A table with faults of all kinds."""
    drawn = random.Random(f"{seed} {suffix}")
    head = [] if suffix == "jsonl" else [("\t" if suffix == "tsv" else ",").join(_KEYS)]
    ends = drawn.choice(("\n", "\r\n", "\n\n"))
    text = ends.join([*head, *(_line(drawn, suffix) for _ in range(drawn.randint(1, 40)))])
    content = text.encode() + drawn.choice((b"", b"\n", b"\xff\n"))
    return drawn.choice((b"", b"\xef\xbb\xbf")) + content


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_rows_and_report_are_those_of_row_by_row(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_MALFORMED", 1)
    path, good = tmp_path / f"table.{suffix}", 0
    for seed in range(40):
        path.write_bytes(_content(seed, suffix))
        columns = dict(zip(_KEYS, _KEYS, strict=True))
        whole, single = Table(path, columns, score="score"), Table(path, columns, score="score")
        try:
            expected = [*single]
        except ValueError:
            with pytest.raises(ValueError, match=path.name):
                whole.read()
            continue
        assert whole.read().to_pylist() == expected
        assert whole.report == single.report
        assert whole.content == hashlib.sha256(path.read_bytes()).hexdigest()
        good += 1
    assert good > 10


@pytest.mark.parametrize("block", [64, 2**23])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_arrow_reads_what_is_in_order(
    suffix: str, end: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_BLOCK", block)
    texts = [' "', "日本", 'x"y,', "\ufeff", ",", '"q"', "a\u2028b"]
    rows = [(f"{text}{n}", f"{n}{text}", n / 4) for n, text in enumerate(texts * 9)]
    if suffix == "jsonl":
        lines = [json.dumps(dict(zip(_KEYS, row, strict=True))) for row in rows]
    else:
        quoted = (
            (lambda cell: f'"{cell.replace(chr(34), chr(34) * 2)}"') if suffix == "csv" else str
        )
        comma = "," if suffix == "csv" else "\t"
        cells = [(quoted(first), quoted(second), str(score)) for first, second, score in rows]
        lines = [comma.join(row) for row in [_KEYS, *cells]]
    path = tmp_path / f"table.{suffix}"
    path.write_bytes(f"\ufeff{end.join(lines)}".encode())
    table = Table(path, dict(zip(_KEYS, _KEYS, strict=True)), score="score")
    monkeypatch.setattr(TableReader, "__iter__", None)
    assert table.read().to_pylist() == [
        {"sentence1": first.strip(), "sentence2": second.strip(), "score": score}
        for first, second, score in rows
    ]
    assert table.report.rows == len(rows)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_packed_file_and_its_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"".join([b"text\n", *(b"line %d\n" % n for n in range(999))])))
    table = Table(path, {"text": "text"})
    assert table.read().num_rows == 999
    assert table.content == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"a\.tsv\.gz.*: expected a complete gzip file"):
        Table(path, {"text": "text"}).read()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_a_line_without_an_end_is_one_bad_row(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("use_st5.data.tables.LONGEST_ROW", 1000)
    path, long = tmp_path / f"a.{suffix}", "x" * 5000
    lines = ["text", *(f"line {n}" for n in range(30)), long, "last"]
    if suffix == "jsonl":
        lines = [f'{{"text": "{line}"}}' for line in lines[1:]]
    path.write_text("\n".join(lines))
    table = Table(path, {"text": "text"})
    assert table.read()["text"].to_pylist() == [*(f"line {n}" for n in range(30)), "last"]
    number = 31 if suffix == "jsonl" else 32
    assert table.report.offences == [f"{path}:{number}: a line of more than 1,000 bytes"]


def test_a_score_with_an_underscore_is_no_number(tmp_path: Path) -> None:
    (path := tmp_path / "a.tsv").write_text(
        "sentence1\tsentence2\tscore\na\tb\t1_0\n" + "a\tb\t1\n" * 9
    )
    table = Table(path, dict(zip(_KEYS, _KEYS, strict=True)), score="score")
    assert table.read()["score"].to_pylist() == [1.0] * 9
    assert table.report.offences == [f"{path}:2: 'score' is not a number: '1_0'"]


def test_rows_that_a_quote_joins_are_counted_with_their_lines(tmp_path: Path) -> None:
    """The quote of line 3 is closed in line 8 by chance; line 10 has a text over two lines."""
    lines = ["text", "one", '"two', *"abcd", 'three"', "four", '"five', 'six"']
    (path := tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    table = Table(path, {"text": "text"})
    assert table.read().num_rows == 4
    assert table.report.notes == {
        "rows over several lines, which a quote joins (first: lines 3 to 8)": 2
    }
    one_by_one = TableReader(path, {"text": "text"})
    assert len([*one_by_one]) == 4
    assert one_by_one.report == table.report


def test_carriage_returns_alone_and_utf16_are_refused(tmp_path: Path) -> None:
    """Both were one row or rows of NULs."""
    (path := tmp_path / "a.csv").write_bytes(b"text\rone\rtwo\r")
    with pytest.raises(ValueError, match=r"a\.csv: expected lines that end in a line feed"):
        Table(path, {"text": "text"}).read()
    path.write_bytes("text\none\n".encode("utf-16-be"))
    with pytest.raises(ValueError, match=r"received UTF-16.*iconv -f UTF-16BE"):
        Table(path, {"text": "text"}).read()


def test_labels_may_be_whole_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "t {n}", "label": {n % 3}}}\n' for n in range(99)))
    labels = Table(path, {"text": "text", "label": "label"}, label="label").read()["label"]
    assert labels.to_pylist() == [str(n % 3) for n in range(99)]


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


@pytest.mark.parametrize(
    ("name", "content", "columns", "options", "rows"),
    [
        ("a.tsv", '"a\tb"c\n', {"x": 0, "y": 1}, {}, [{"x": '"a', "y": 'b"c'}]),
        ("a.tsv", "first\tsecond\n1\t2\n", {"x": 1}, {}, [{"x": "second"}, {"x": "2"}]),
        ("a.tsv", "B\tA\n1\t2\n", {"x": ("a", "b")}, {}, [{"x": "2"}]),
        ("a.tsv", "B\tA\n1\t2\n", {"x": ("c", "b")}, {}, [{"x": "1"}]),
        ("a.csv", "a, b\tc\n", {"x": 0}, {"file_format": "tsv"}, [{"x": "a, b"}]),
        ("a.tsv", "w\nn\n", {"w": "w", "e": "e"}, {"optional": ("e",)}, [{"w": "n", "e": ""}]),
        # A column that is not read may stand there twice.
        ("a.tsv", "x\ty\tY\n1\t2\t3\n", {"x": "x"}, {}, [{"x": "1"}]),
        ("a.jsonl", '{"x": "1", "y": 2, "Y": 3}', {"x": "x"}, {}, [{"x": "1"}]),
    ],
)
def test_columns_by_position_and_by_alternative_names(
    name: str, content: str, columns: Any, options: Any, rows: list[Any], tmp_path: Path
) -> None:
    assert list(TableReader(write(tmp_path / name, content), columns, **options)) == rows


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "x\tX\tx\n1\t2\t3\n", "one column 'x', found 'x', 'X', 'x'"),
        ("a.csv", "y,x,x\n1,2,3\n", "one column 'x', found 'x', 'x'"),
        ("a.jsonl", '{"x": "1", "x": "2"}\n', "a.jsonl:1: the key 'x' occurs twice"),
        ("b.jsonl", '{"x": "1", "X": "2"}\n', "b.jsonl:1: 'x' and 'X' name the same column"),
    ],
)
def test_a_column_that_is_read_stands_there_once(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        list(TableReader(write(tmp_path / name, content), {"x": "x"}))


def test_a_column_of_parquet_stands_there_once(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.Table.from_arrays([["1"], ["2"]], ["x", "x"]), path)
    with pytest.raises(ValueError, match=r"a\.parquet: found two columns 'x'"):
        list(TableReader(path, {"x": "x"}))


@pytest.mark.parametrize(
    ("inside", "last", "message"),
    [
        (["question,answer"] * 3000, "", r"a\.csv:12: .*look like rows"),
        (["question,answer"] * 3000, 'text",answer', r"a\.csv:12: .*look like rows"),
        (["some words"] * 1001, 'text",answer', r"a\.csv:12: .* more than 1,000 lines"),
    ],
)
def test_a_quote_that_swallows_rows_is_an_error(
    inside: list[str], last: str, message: str, tmp_path: Path
) -> None:
    lines = ["q,a", *["one,two"] * 10, '"question,answer', *inside, last]
    path = write(tmp_path / "a.csv", "\n".join(lines))
    columns = {"q": "q", "a": "a"}
    with pytest.raises(ValueError, match=message):
        list(TableReader(path, columns, max_malformed=1))
    with pytest.raises(ValueError, match=message):
        Table(path, columns).read()


def test_each_line_of_a_broken_row_is_a_bad_row(tmp_path: Path) -> None:
    """The quote of line 2 is closed by the next quoted field, whose text breaks the row."""
    lines = ["q,a", '"one,1', *["more,2"] * 9, '"Yes, 12",3', "good,4"]
    reader = TableReader(
        write(tmp_path / "a.csv", "\n".join(lines)), {"q": "q", "a": "a"}, max_malformed=1
    )
    assert list(reader) == [{"q": "good", "a": "4"}]
    assert reader.report.malformed_rows == 11
    assert "a row in lines 2 to 12" in reader.report.offences[0]


def test_a_list_of_places_is_no_table(tmp_path: Path) -> None:
    """Each line has one comma, as in a table of two columns, but too few lines prove it."""
    places = "\n".join(["Berlin, Germany", "Paris, France"] * 6)
    path = write(tmp_path / "a.csv", f'q,a\n"{places}",c\n')
    assert list(TableReader(path, {"q": "q"})) == [{"q": places}]


@pytest.mark.parametrize("lines", [2, 900])
def test_a_text_may_have_many_lines(lines: int, tmp_path: Path) -> None:
    text = "\n".join(f"line {n}, with commas, or none" if n % 3 else "" for n in range(1, lines))
    path = write(tmp_path / "a.csv", f'q,a\n"{text}",one\ntwo,three\n')
    assert [row["a"] for row in TableReader(path, {"a": "a"})] == ["one", "three"]


def test_what_is_too_long_is_malformed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("use_st5.data.tables.LONGEST_ROW", 1000)
    long = "x" * 2000
    for name, content, line in (
        ("a.tsv", f"q\ta\n{long}\tb\nc\td\n", 2),
        ("a.csv", f"q,a\n{long},b\nc,d\n", 2),
        ("a.jsonl", f'{{"q": "{long}", "a": "b"}}\n{{"q": "c", "a": "d"}}', 1),
    ):
        reader = TableReader(write(tmp_path / name, content), {"q": "q", "a": "a"}, max_malformed=1)
        assert list(reader) == [{"q": "c", "a": "d"}]
        reason = f"{reader.paths[0]}:{line}: a line of more than 1,000 bytes"
        assert reader.report.offences == [reason]
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"q": [long, "c"]}), tmp_path / "a.parquet")
    reader = TableReader(tmp_path / "a.parquet", {"q": "q"}, max_malformed=1)
    assert list(reader) == [{"q": "c"}]
    assert reader.report.offences[0].endswith("'q' has 2,000 characters, expected at most 1,000")


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
