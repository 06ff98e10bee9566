"""Arrow gives the same rows and the same report for a table as reading it row by row."""

from __future__ import annotations

import gzip
import hashlib
import random
from collections import Counter
from pathlib import Path

import pytest

from use_st5.data import _blocks, tables
from use_st5.data.table_reader import TableReader
from use_st5.data.tables import Table

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


@pytest.mark.parametrize("block", [64, 2**23])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_rows_and_report_are_those_of_row_by_row(
    suffix: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_blocks, "_BLOCK", block)
    monkeypatch.setattr(tables, "_MAX_MALFORMED", 1)
    path = tmp_path / f"table.{suffix}"
    outcomes = Counter[bool]()
    for seed in range(30):
        path.write_bytes(_content(seed, suffix))
        whole, single = (
            Table(path, dict(zip(_KEYS, _KEYS, strict=True)), score="score") for _ in range(2)
        )
        try:
            expected = [*single]
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error).split("\n")[0].split(".")[0][:20]):
                whole.read()
            outcomes[False] += 1
            continue
        assert whole.read().to_pylist() == expected
        assert whole.report == single.report
        assert whole.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        outcomes[True] += 1
    assert outcomes[True] > 10


def test_a_packed_file_and_its_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"".join([b"text\n", *(b"line %d\n" % n for n in range(999))])))
    table = Table(path, {"text": "text"})
    assert table.read().num_rows == 999
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"a\.tsv\.gz: expected a complete gzip file"):
        Table(path, {"text": "text"}).read()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_a_line_without_an_end_is_one_bad_row(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_blocks, "_BLOCK", 512)
    monkeypatch.setattr("use_st5.data._records.LONGEST_ROW", 1000)
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
    assert (table.report.joined, table.report.joined_lines) == (2, [(3, 8), (10, 11)])
    message = table.report.joined_message()
    assert "joins: 2 (lines 3 to 8, 10 to 11)." in message
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
