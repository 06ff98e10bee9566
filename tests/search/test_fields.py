"""Expressions on fields, and indexes that are changed: compared with what all rows say."""

from __future__ import annotations

import datetime
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.search.test_vector_index import Hashed, Split
from use_st5.encode.similarity import unit_rows
from use_st5.search.fields import field_table, matching_rows
from use_st5.search.vector_index import VectorIndex

ROWS = pa.table(
    {
        "id": ["007", "7", "a", "b", "c"],
        "domain": ["law", "art", None, "law", "it's"],
        "year": pa.array([1990, 2001, 2001, None, -5], pa.int64()),
        "price": pa.array([0.75, 0.1, None, 2.0, 3.5], pa.float32()),
        "free": [True, False, None, True, False],
        "day": pa.array([datetime.date(2024, 1, day) for day in range(1, 6)]),
        "long name": ["x", "y", "x", "", "y"],
    }
)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ('domain == "law"', [0, 3]),
        ('domain != "law"', [1, 2, 4]),
        ('not domain == "law"', [1, 2, 4]),
        ("domain is None", [2]),
        ("domain == None or year == None", [2, 3]),
        ("domain is not None", [0, 1, 3, 4]),
        ("domain == 'it\\'s'", [4]),
        ("domain in ['law', None]", [0, 2, 3]),
        ("domain not in ('law', 'art')", [2, 4]),
        ("domain in []", []),
        ("year == 2001.0", [1, 2]),
        ("year < 2001", [0, 4]),
        ("year >= -5 and not year > 1990", [0, 4]),
        ("year > 1 or domain == 'law' and year is None", [0, 1, 2, 3]),
        ("price == 0.75", [0]),
        ("price == 0.1", [1]),
        ("free == True", [0, 3]),
        ("free != True", [1, 2, 4]),
        ("id == '007'", [0]),
        ("day >= '2024-01-04'", [3, 4]),
        ("'long name' == 'x'", [0, 2]),
        ("'long name' == ''", [3]),
        (pc.field("year") + 1 == 2002, [1, 2]),
    ],
)
def test_the_rows_of_an_expression(where: str | pc.Expression, rows: list[int]) -> None:
    assert matching_rows(ROWS, where).tolist() == rows


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("free == 1", "'free' is of type bool, received 1"),
        ("year == True", "'year' is of type int64, received True"),
        ("year == '1990'", "received '1990'"),
        ("domain == law", "a text in quotes.* received law"),
        ("topic == 'law'", "expected one of .*'domain'.*, received 'topic'"),
        ("domain", "expected FIELD == VALUE"),
        ("domain is 'law'", "expected FIELD == VALUE"),
        ("domain in 'law'", "expected FIELD == VALUE"),
        ("1 < year < 2", "expected FIELD == VALUE"),
        ("__import__('os').getcwd() == 'x'", "expected FIELD == VALUE"),
        ("year == __import__('os')", "a text in quotes"),
        ("domain == 'law' +", "expected FIELD == VALUE"),
        ("year == " + "9" * 30, "expected FIELD == VALUE"),
        ("not " * 2000 + "year == 1", "expected FIELD == VALUE"),
        ("day >= 'soon'", "expected FIELD == VALUE"),
        (" or ".join(["year == 1"] * 2000), "at most 10,000 characters"),
        (pc.field("topic") == 1, "topic"),
    ],
)
def test_other_expressions_are_refused(where: str | pc.Expression, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matching_rows(ROWS, where)


@pytest.mark.parametrize("ids", [["a", "b", "a"], ["a", None, "b"]])
def test_ids_are_different_texts(ids: list[str | None]) -> None:
    assert field_table({"ID": [3, 12, 0]}, 3)["ID"].to_pylist() == ["3", "12", "0"]
    with pytest.raises(ValueError, match="expected different ids"):
        field_table({"id": ids}, 3)
    with pytest.raises(ValueError, match="expected 3 rows, received 2"):
        field_table({"x": [1, 2]}, 3)


def rows_of(numbers: list[int]) -> tuple[list[str], dict[str, list]]:
    """Texts and fields; a text occurs under two ids."""
    texts = [f"text {number // 2} of words{number % 3}" for number in numbers]
    return texts, {"id": [f"{n:03}" for n in numbers], "mod": [n % 7 for n in numbers]}


def build(
    folder: Path, numbers: list[int], kind: str = "exact", *, has_windows: bool = False
) -> VectorIndex:
    if kind == "hnsw":
        pytest.importorskip("faiss", reason="the extra `search` is not installed")
    texts, fields = rows_of(numbers)
    pieces, owners = Split().document_windows(texts)
    windows: dict[str, Any] = {"windows": owners} if has_windows else {}
    vectors = Hashed().encode(pieces if has_windows else texts)
    return VectorIndex.build(
        folder, vectors, encoder=Split(), texts=texts, fields=fields, kind=kind, **windows
    )


def check(index: VectorIndex, numbers: list[int]) -> None:
    """Compares an index with the numbers of its rows, and its searches with sorting all rows."""
    texts, fields = rows_of(numbers)
    assert [*index.texts()] == texts
    assert index.fields is not None
    assert index.fields.to_pydict() == fields
    pieces, owners = Split().document_windows(texts)
    if not index.has_windows:
        pieces, owners = texts, np.arange(len(texts))
    vectors, queries = unit_rows(Hashed().encode(pieces)), unit_rows(Hashed().encode(["a", "b"]))
    products = np.full((2, len(texts)), -1, np.float32)
    np.maximum.at(products, (slice(None), owners), queries @ vectors.T)
    for where, kept in (
        (None, range(len(numbers))),
        ("mod == 3", [row for row, number in enumerate(numbers) if number % 7 == 3]),
        ("mod == 9", []),
    ):
        scores, rows = index.search(Hashed(), ["a", "b"], k=5, breadth=1000, where=where)
        for query in range(2):
            best = sorted(kept, key=lambda row: (-products[query, row], row))[:5]
            assert rows[query].tolist() == best
            np.testing.assert_allclose(scores[query], products[query, best], atol=1e-6)


@pytest.mark.parametrize("has_windows", [False, True])
@pytest.mark.parametrize("kind", ["exact", "hnsw", "binary"])
def test_changes_in_any_order_give_what_all_rows_give(
    kind: str, has_windows: bool, tmp_path: Path
) -> None:
    draw, numbers = random.Random(0), [*range(40)]
    index = build(tmp_path / "index", numbers, kind, has_windows=has_windows)
    assert index.has_windows == has_windows
    check(index, numbers)
    for step in range(8):
        more = draw.sample(range(100), 9)
        texts, fields = rows_of(more)
        if step % 2:
            index.add(texts, encoder=Split(), fields=fields, replace=True)
            numbers = [number for number in numbers if number not in more] + more
        elif step % 4:
            gone = draw.sample(numbers, 6)
            assert index.remove([f"{number:03}" for number in gone]) == 6
            numbers = [number for number in numbers if number not in gone]
        else:
            wanted = draw.randrange(7)
            index.remove(where=f"mod == {wanted}")
            numbers = [number for number in numbers if number % 7 != wanted]
        check(index, numbers)
        check(VectorIndex(tmp_path / "index"), numbers)
    index.verify()


def test_what_is_removed_is_not_on_the_disk(tmp_path: Path) -> None:
    index = build(tmp_path / "index", [*range(20)])
    index.add(["secret words"], encoder=Hashed(), fields={"id": ["0x"], "mod": [1]})
    vector = np.array(index._vectors[20]).tobytes()
    content = [path.read_bytes() for path in (tmp_path / "index").iterdir()]
    assert any(b"secret" in data for data in content)
    assert any(vector in data for data in content)
    assert index.remove(rows=[20]) == 1
    content = [path.read_bytes() for path in (tmp_path / "index").iterdir()]
    assert not any(b"secret" in data or b"0x" in data or vector in data for data in content)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    check(index, [*range(20)])


def test_changes_that_are_refused_change_nothing(tmp_path: Path) -> None:
    index, other = build(tmp_path / "index", [*range(20)]), Hashed(identity="1" * 64)
    texts, fields = rows_of([30, 31])
    for message, options in (
        ("has '003'", {"fields": {**fields, "id": ["030", "003"]}}),
        ("'030' twice", {"fields": {**fields, "id": ["030", "030"]}}),
        ("expected 'id'", {"fields": {"mod": [1, 2]}}),
        ("expected 'id'", {}),
        (r"received \['x'\]", {"fields": {**fields, "x": [1, 2]}}),
        ("parse", {"fields": {**fields, "mod": ["one", "two"]}}),
        ("expected 2 rows", {"fields": {"id": ["x"]}}),
        ("its model", {"fields": fields, "encoder": other}),
        (r"expected \[2, 20\]", {"fields": fields, "vectors": np.ones((2, 21))}),
        ("for these texts", {"fields": fields, "vectors": np.ones((2, 20))}),
        (r"received \[1, 20\]", {"fields": fields, "vectors": Hashed().encode(texts[:1])}),
    ):
        with pytest.raises(ValueError, match=message):
            index.add(texts, **{"encoder": Hashed(), **options})  # type: ignore[arg-type]
    for message, wanted in (
        ("no row with the id 'x'", {"ids": ["001", "x"]}),
        ("one of them only", {}),
        ("one of them only", {"rows": [1], "where": "mod == 1"}),
        ("expected to keep a row", {"where": "mod < 7"}),
    ):
        with pytest.raises(ValueError, match=message):
            index.remove(**wanted)  # type: ignore[arg-type]
    assert index.remove(where="mod == 9") == 0
    check(index, [*range(20)])
    check(VectorIndex(tmp_path / "index"), [*range(20)])


def test_fields_that_are_left_out_are_missing(tmp_path: Path) -> None:
    index = build(tmp_path / "index", [*range(20)])
    index.add(["new"], encoder=Hashed(), fields={"id": ["x"]})
    assert index.field_values(20) == {"id": "x", "mod": None}
    assert index.matching_rows("mod is None").tolist() == [20]


def test_two_processes_that_change_an_index_lose_nothing(tmp_path: Path) -> None:
    first, second = build(tmp_path / "index", [*range(20)]), VectorIndex(tmp_path / "index")
    texts, fields = rows_of([50])
    second.add(texts, encoder=Hashed(), fields=fields)
    assert len(first) == 20
    assert first.text(19) == rows_of([19])[0][0]  # what it has mapped stays
    texts, fields = rows_of([60])
    first.add(texts, encoder=Hashed(), fields=fields)
    check(first, [*range(20), 50, 60])


@pytest.mark.process
@pytest.mark.parametrize("call", ["rename", "replace"])
def test_a_killed_change_leaves_the_old_index(call: str, tmp_path: Path) -> None:
    """Killed before the old folder is moved aside, and before the new one takes its place."""
    build(tmp_path / "index", [*range(20)])
    code = f"""
import os, sys
from pathlib import Path
from use_st5.search import VectorIndex
index = VectorIndex(sys.argv[1])
Path.{call} = lambda self, target: os._exit(9)
index.remove(where="mod == 3")
"""
    command = [sys.executable, "-c", code, str(tmp_path / "index")]
    assert subprocess.run(command, check=False).returncode == 9
    index = VectorIndex(tmp_path / "index")
    check(index, [*range(20)])
    assert index.remove(where="mod == 3") == 3
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
