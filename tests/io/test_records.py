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
        (b"", "$: expected JSON, received a text that ends too early"),
        (b"{", "$: expected JSON, received a text that ends too early"),
        (b"\0" * 99, "$: expected JSON, received another text: invalid character (byte 0)"),
        (b"[]", "$: expected object, received array"),
        (b'{"size": 1}', "$: expected the field files, received none of this name"),
        (b'{"size": "1", "files": {}}', "$.size: expected int, received str"),
        (b'{"size": 1.0, "files": {}}', "$.size: expected int, received float"),
        (b'{"size": true, "files": {}}', "$.size: expected int, received bool"),
        (b'{"size": -1, "files": {}}', "$.size: expected int >= 0, received -1. "),
        (b'{"size": 1, "files": {"a": 1e999}}', "$.files[...]: expected a number, received one"),
        (b'{"size": 1, "files": {"a": NaN}}', "$: expected JSON, received another text"),
        (b'{"size": 1, "files": {"../a": 1}}', "$.files: expected a path inside the folder"),
        (b'{"size": 1' + b"0" * 9999 + b"}", "$.size: expected a number, received one out of"),
        (b'{"size": 1, "facts": ' + b"[" * 10**5, "$: expected a record, received JSON that is"),
        (b'{"more": ' + b"[" * 10**5, "$: expected a record, received JSON that is nested too"),
        (b'{"letters": "\xff"}', "$: expected UTF-8, received other bytes"),
        (b'{"sizes": [[1], [2, -3]]}', "$.sizes[1][1]: expected int >= 0, received -3. "),
        (
            b'{"letters": "' + b"a" * 99 + b'"}',
            '$.letters: expected str of length <= 3, received "aa',
        ),
        (b'{"rows": {"long key": 1}}', "$.rows: expected str of length <= 5, received another. "),
        (b'{"rows": {"a": -1}}', "$.rows[...]: expected int >= 0, received another. "),
        (b'{"mode": "c"}', "$.mode: expected 'a' or 'b' or None, received 'c'. "),
        (b'{"parts": [{"a": true}]}', "$.parts[0][...]: expected False, received True. "),
        (b'{"letters": "ab\\ncd"}', '$.letters: expected str of length <= 3, received "ab\\ncd". '),
    ],
)
def test_damage_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(tmp_path / "a.json", content)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'a.json'}: {message}")
    assert text.endswith(". Copy it again.")
    assert "\n" not in text


@pytest.mark.parametrize("name", ["letters", "mode"])
def test_a_long_value_is_cut_at_200_characters(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"received .c{199}…\. Copy it again\.$"):
        read(tmp_path / "a.json", b'{"%s": "%s"}' % (name.encode(), b"c" * 10**5))


def test_versions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(ValueError, match=r"\$.format: expected 2, received 3: .*Update use_st5"):
        read(path, b'{"format": 3, "anything": 1}', version=2)
    with pytest.raises(ValueError, match=r"\$.format: expected 2, received 1\. Copy it again\."):
        read(path, b'{"format": 1}', version=2)
    with pytest.raises(ValueError, match=r"\$: expected the field format"):
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
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_record("[" * 10**5, Toy, where="x", remedy="No.", not_finite=True)
    with pytest.raises(ValueError, match=r"x: \$.size: expected int, received str"):
        parse_record('{"size": "1"}', Toy, where="x", remedy="No.", not_finite=True)


@pytest.mark.parametrize("path", ["/a", "C:a", 3, None])
def test_paths_that_lead_elsewhere(path: Any) -> None:
    assert InnerPath.checked("a/b.c") == "a/b.c"
    with pytest.raises(ValueError, match="Expected a path inside the folder"):
        InnerPath.checked(path)
