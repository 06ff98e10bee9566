"""The rows of files: the same texts out of every format, and a reason for every bad row."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from use_st5.beam.rows import FileFormat, Row, bad_row, read_rows

TEXTS = ["Ein Satz.", "", "tab\there", "emoji 🙂 and 日本語", 'a "quote" and \\', "a b"]


def parquet_bytes(columns: dict[str, list[Any]]) -> bytes:
    """A file of Parquet with two rows in a group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, row_group_size=2)
    return file.getvalue()


def tfrecord_bytes(folder: Path, rows: list[dict[str, Any]]) -> bytes:
    """A file of records as TensorFlow writes them; the bytes of a `raw` row are written as such."""
    import tensorflow as tf

    path = folder / "written.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            example = tf.train.Example()
            for name, value in row.items():
                feature = example.features.feature[name]
                kinds = {int: feature.int64_list, float: feature.float_list}
                value = value.encode() if isinstance(value, str) else value
                kinds.get(type(value), feature.bytes_list).value.append(value)
            writer.write(row.get("raw") or example.SerializeToString())
    return path.read_bytes()


@pytest.fixture
def content(tmp_path: Path) -> Callable[[FileFormat, list[dict[str, Any]]], bytes]:
    """Returns the bytes of a file with these rows, in a format."""

    def made(file_format: FileFormat, rows: list[dict[str, Any]]) -> bytes:
        if file_format == "parquet":
            return parquet_bytes({name: [row[name] for row in rows] for name in rows[0]})
        if file_format == "tfrecord":
            return tfrecord_bytes(tmp_path, rows)
        if file_format == "jsonl":
            return "".join(json.dumps(row) + "\n" for row in rows).encode()
        return "".join(row["text"] + "\n" for row in rows).encode()

    return made


def read(data: bytes, name: str, **options: Any) -> list[Row]:
    """The rows of a file in memory."""
    return list(read_rows(io.BytesIO(data), name, **options))


SUFFIXES = {"text": ".txt", "jsonl": ".jsonl", "parquet": ".parquet", "tfrecord": ".tfrecord"}


@pytest.mark.parametrize(
    ("file_format", "zipped"),
    # Parquet is compressed inside.
    [*((each, False) for each in SUFFIXES), *((each, True) for each in SUFFIXES if each[0] != "p")],
)
def test_every_format_gives_the_same_rows(
    file_format: FileFormat, zipped: bool, content: Callable, tmp_path: Path
) -> None:
    data = content(file_format, [{"text": text} for text in TEXTS])
    name = f"a/b{SUFFIXES[file_format]}"
    if zipped:
        data, name = gzip.compress(data), f"{name}.gz"
    expected = [(f"{name}:{number}", text) for number, text in enumerate(TEXTS, start=1)]
    assert read(data, name) == expected
    path = tmp_path / "on_disk"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert list(read_rows(file, name, file_format=file_format)) == expected


@pytest.mark.parametrize("file_format", ["jsonl", "parquet", "tfrecord"])
@pytest.mark.parametrize("ids", [["x", "y"], [7, 8]])
def test_fields_are_named(file_format: FileFormat, ids: list[Any], content: Callable) -> None:
    rows = [{"key": ids[0], "body": "one"}, {"key": ids[1], "body": "two"}]
    data = content(file_format, rows)
    found = read(data, "f", text_field="body", id_field="key", file_format=file_format)
    assert found == [(str(ids[0]), "one"), (str(ids[1]), "two")]


def test_bad_lines_of_text_are_set_aside() -> None:
    found = read(b"\xef\xbb\xbfone\r\n\xff two\nthree", "t.txt")
    bad = bad_row("t.txt:2", "invalid utf-8", "\\xff two")
    assert found == [("t.txt:1", "one"), bad, ("t.txt:3", "three")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "invalid JSON"),
        (b"[1]", "a JSON array, expected an object in each line"),
        (b'{"other": 1}', "no 'text'"),
        (b'{"text": null}', "no 'text'"),
        (b'{"text": 3}', "'text' is of type int, expected text"),
        (b'{"text": "\xff"}', "invalid utf-8"),
        (b'{"text": "\\ud800"}', "half of a surrogate pair, which is no character"),
    ],
)
def test_bad_lines_of_jsonl_say_why(line: bytes, reason: str) -> None:
    found = read(b'{"text": "good"}\n\n' + line + b'\n{"text": "too"}\n', "t.jsonl")
    shown = line.decode("utf-8", "backslashreplace")
    assert found == [
        ("t.jsonl:1", "good"),
        bad_row("t.jsonl:3", reason, shown),
        ("t.jsonl:4", "too"),
    ]


def test_bad_rows_of_parquet_say_why() -> None:
    found = read(parquet_bytes({"text": ["a", None, "c"]}), "t.parquet")
    assert found == [
        ("t.parquet:1", "a"),
        bad_row("t.parquet:2", "no 'text'", "{'text': None}"),
        ("t.parquet:3", "c"),
    ]
    (bad,) = read(parquet_bytes({"text": [b"\xff"]}), "t.parquet")
    assert bad == bad_row("t.parquet:1", "invalid utf-8 in 'text'", "{'text': b'\\xff'}")
    (bad,) = read(parquet_bytes({"other": ["a"]}), "t.parquet")
    assert bad == bad_row("t.parquet:1", "no 'text'", "{}")


def test_bad_records_of_tensorflow_say_why(tmp_path: Path) -> None:
    rows = [{"text": "a"}, {"raw": b"\xff\xff"}, {"other": "b"}, {"text": 0.5}, {"text": "e"}]
    found = read(tfrecord_bytes(tmp_path, rows), "t.tfrecord")
    reasons = [row["reason"] if isinstance(row, dict) else row[1] for row in found]
    assert reasons == [
        "a",
        "expected a tf.train.Example",
        "no 'text'",
        "'text' is of type float, expected text",
        "e",
    ]
    assert [row["id"] if isinstance(row, dict) else row[0] for row in found] == [
        f"t.tfrecord:{number}" for number in range(1, 6)
    ]


@pytest.mark.parametrize("file_format", ["text", "tfrecord"])
def test_a_file_that_breaks_off_ends_with_a_bad_row(
    file_format: FileFormat, content: Callable
) -> None:
    data = content(file_format, [{"text": text} for text in TEXTS])
    data = gzip.compress(data)[:-12] if file_format == "text" else data[:-3]
    name = f"t{SUFFIXES[file_format]}"
    *good, bad = read(data, name)
    assert [row[1] for row in good] == TEXTS[: len(good)]
    assert isinstance(bad, dict)
    assert bad["id"] == name
    assert bad["reason"].startswith(f"not read after row {len(good)}: ")
    if file_format == "tfrecord":
        assert len(good) == len(TEXTS) - 1


@pytest.mark.parametrize("name", ["t.parquet", "t.txt", "t.tfrecord"])
def test_a_file_of_another_kind_is_one_bad_row(name: str) -> None:
    (bad,) = read(b"\xff\xfeno such thing at all", name)
    assert isinstance(bad, dict)
    assert (bad["id"], bad["content"]) == (name, "")
    assert bad["reason"].startswith("not read after row 0: ")


def test_an_error_of_the_system_is_raised() -> None:
    class Broken(io.BytesIO):
        def readline(self, *_: Any) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        list(read_rows(Broken(b"abc"), "t.txt"))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", ["t.txt", "t.jsonl"])
def test_rows_behind_one_that_is_too_long_are_read(
    name: str, zipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("use_st5.beam.rows.LONGEST_ROW", 1000)
    monkeypatch.setattr("use_st5.data.tables.LONGEST_ROW", 1000)
    lines = ["before", "x" * 3000, "after"]
    if name == "t.jsonl":
        lines = [json.dumps({"text": line}) for line in lines]
    data = "\n".join(lines).encode()
    first, bad, last = read(gzip.compress(data) if zipped else data, name)
    assert (first, last) == ((f"{name}:1", "before"), (f"{name}:3", "after"))
    assert isinstance(bad, dict)
    assert (bad["id"], bad["reason"]) == (f"{name}:2", "a line of more than 1,000 bytes")
    assert bad["content"] == lines[1][:1001]


def test_the_name_tells_the_format() -> None:
    assert len(read(b"x\n", "a.TXT")) == len(read(b'{"text": ""}', "a.ndjson")) == 1
    with pytest.raises(ValueError, match=r"notes.md: expected a name with one of .txt"):
        read(b"x\n", "notes.md")
