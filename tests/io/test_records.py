from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from use_st5.io.records import Count, InnerPath, parse_record, read_bounded, read_record


@dataclasses.dataclass(frozen=True)
class Toy:
    size: Count
    files: dict[InnerPath, float]
    facts: Any = None
    letters: Annotated[str, msgspec.Meta(max_length=3)] = ""
    sizes: tuple[tuple[Count, ...], ...] = ()
    rows: dict[Annotated[str, msgspec.Meta(max_length=5)], Count] = dataclasses.field(
        default_factory=dict
    )
    mode: Literal["a", "b"] | None = None
    parts: tuple[dict[str, Literal[False]], ...] = ()


def read(path: Path, content: bytes, **options: Any) -> Toy:
    path.write_bytes(content)
    return read_record(path, Toy, remedy="Copy it again.", **options)


def test_a_whole_record(tmp_path: Path) -> None:
    content = b'{"format": 1, "size": 3, "files": {"a/b": 1}, "facts": [1], "more": 5}'
    expected = Toy(3, {InnerPath("a/b"): 1.0}, facts=[1])
    assert read(tmp_path / "a.json", content, version=1) == expected
    assert isinstance(next(iter(expected.files)), str)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "$: expected JSON: Input data"),
        (b"\0", "$: expected JSON: JSON is malformed"),
        (b"[]", "$: expected object, received array"),
        (b'{"size": 1}', "$: object missing required field files"),
        (b'{"size": "1", "files": {}}', "$.size: expected int, received str"),
        (b'{"size": -1, "files": {}}', "$.size: expected int >= 0"),
        (b'{"size": 1, "files": {"a": 1e999}}', "$.files[...]: number out of range"),
        (b'{"size": 1, "files": {"../a": 1}}', "$.files: expected a path inside the folder"),
        (b'{"size": 1, "facts": ' + b"[" * 10**5, "$: expected less deeply nested"),
        (b'{"letters": "\xff"}', "$: expected JSON: 'utf-8' codec"),
        (b'{"sizes": [[1], [2, -3]]}', "$.sizes[1][1]: expected int >= 0"),
        (b'{"letters": "' + b"a" * 99 + b'"}', "$.letters: expected str of length <= 3"),
        (b'{"mode": "c"}', "$.mode: invalid enum value 'c'"),
    ],
)
def test_damage_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(tmp_path / "a.json", content)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'a.json'}: {message}")
    assert text.endswith(". Copy it again.")
    assert "\n" not in text


def test_versions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(ValueError, match=r"\$.format: expected 2, received 3: .*Update use_st5"):
        read(path, b'{"format": 3, "anything": 1}', version=2)
    with pytest.raises(ValueError, match=r"\$.format: expected 2, received 1\. Copy it again\."):
        read(path, b'{"format": 1}', version=2)
    with pytest.raises(ValueError, match="missing required field format"):
        read(path, b'{"size": 1, "files": {}}', version=2)


def test_large_files_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch()
    os.truncate(path, 2**40)  # sparse
    with pytest.raises(ValueError, match="expected up to 100 bytes, received 1,099,511,627,776"):
        read_bounded(path, limit=100, remedy="Copy it again.")
    with pytest.raises(FileNotFoundError, match=r"b.json: expected a file, found none\. Copy"):
        read_bounded(tmp_path / "b.json", limit=100, remedy="Copy it again.")


def test_numbers_that_are_not_finite_where_they_are_known() -> None:
    content = '{"size": 1, "files": {"a": NaN, "b": -Infinity}}'
    found = parse_record(content, Toy, where="x", remedy="No.", not_finite=True)
    assert str(found.files["a"]) == "nan"
    assert found.files["b"] == -float("inf")
    with pytest.raises(ValueError, match="less deeply nested"):
        parse_record("[" * 10**5, Toy, where="x", remedy="No.", not_finite=True)
    with pytest.raises(ValueError, match=r"x: \$.size: expected int, received str"):
        parse_record('{"size": "1"}', Toy, where="x", remedy="No.", not_finite=True)
