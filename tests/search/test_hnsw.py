from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.damage import Damage, check_reading
from tests.search.damages import answer, write_index
from use_st5._vectors import unit_rows
from use_st5.search.exact import exact_search
from use_st5.search.hnsw import NearGraph, check_graph_file
from use_st5.search.index_files import IndexRecord


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """Rows of length 1 around 40 centres, as texts of 40 topics would lie."""
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((40, 32))
    rows = centres[generator.integers(40, size=2000)] + 0.5 * generator.standard_normal((2000, 32))
    return unit_rows(rows).astype(np.float32)


def test_it_finds_what_an_exact_search_finds_and_survives_a_file(
    vectors: np.ndarray, tmp_path: Path
) -> None:
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    graph = NearGraph.of(vectors)
    near = graph.near(vectors[:50], count=80)
    _, rows = exact_search(vectors[:50], vectors, k=10)
    assert near.shape == (50, 80)
    assert np.mean([len({*a} & {*b}) for a, b in zip(near, rows, strict=True)]) > 9.5
    graph.write(tmp_path / "graph.faiss")
    again = NearGraph.read(tmp_path / "graph.faiss")
    assert again.shape == (2000, 32)
    np.testing.assert_array_equal(again.near(vectors[:50], count=80), near)


def test_another_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    (tmp_path / "graph.faiss").write_bytes(b"no graph")
    with pytest.raises(ValueError, match=r"graph\.faiss: expected a graph of FAISS"):
        NearGraph.read(tmp_path / "graph.faiss")


def test_without_faiss_the_extra_is_named(
    vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(ImportError, match=r"\[search\]"):
        NearGraph.of(vectors)


ROWS, DIMENSION = 3, 2


HEADER = "<iqqqBi"


def vector(kind: str, *values: float) -> bytes:
    array = np.array(values, kind)
    return struct.pack("<Q", len(array)) + array.tobytes()


def graph(**changes: bytes) -> bytes:
    """The bytes of a graph of three rows with at most two neighbours each, with changed parts."""
    header = struct.pack(HEADER, DIMENSION, ROWS, 1 << 20, 1 << 20, 1, 0)
    parts = {
        "kind": b"IHNs",
        "header": header,
        "chances": vector("<f8", 1.0),
        "levels_start": vector("<i4", 0, 2),
        "levels": vector("<i4", 1, 1, 1),
        "offsets": vector("<u8", 0, 2, 4, 6),
        "neighbours": vector("<i4", 1, 2, 0, 2, 0, -1),
        "entry": struct.pack("<5i", 2, 0, 40, 16, 1),
        "codes_kind": b"IxSQ",
        "codes_header": header,
        "numbers": struct.pack("<iifQQ", 0, 0, 0.0, DIMENSION, DIMENSION),
        "ranges": vector("<f4", -1, -1, 2, 2),
        "codes": vector("u1", *range(ROWS * DIMENSION)),
        "end": b"",
    }
    return b"".join({**parts, **changes}.values())


def test_a_whole_graph_passes(tmp_path: Path) -> None:
    (tmp_path / "g").write_bytes(graph())
    check_graph_file(tmp_path / "g", rows=ROWS, dimension=DIMENSION)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": b"IxFI"}, "expected the kind of graph to be IHNs, found 'IxFI'"),
        (
            {"header": struct.pack("<iqqqBi", 2, 9, 0, 0, 1, 0)},
            "expected the rows to be 3, found 9",
        ),
        ({"header": struct.pack("<iqqqBi", 4, 3, 0, 0, 1, 0)}, "the dimension to be 2, found 4"),
        ({"header": struct.pack("<iqqqBi", 2, 3, 0, 0, 1, 1)}, "expected the metric"),
        ({"chances": struct.pack("<Q", 2**61)}, "expected a longer file"),
        ({"levels": struct.pack("<Q", 2**34)}, "expected a longer file"),
        ({"levels_start": vector("<i4", 0, -2)}, "expected levels that grow"),
        ({"levels": vector("<i4", 1, 1)}, "expected a level of each row to be 3, found 2"),
        ({"levels": vector("<i4", 1, 2, 1)}, "expected levels in their range"),
        ({"offsets": vector("<u8", 0, 2, 4)}, "a begin of each row's neighbours to be 4"),
        ({"offsets": vector("<u8", 0, 4, 2, 6)}, "expected neighbours in order"),
        ({"offsets": vector("<u8", 0, 2, 4, 2**40)}, "expected neighbours in order"),
        ({"neighbours": vector("<i4", 1, 2, 0, 3, 0, -1)}, "expected neighbours that are rows"),
        ({"neighbours": vector("<i4", 1, 2, 0, -2, 0, -1)}, "expected neighbours that are rows"),
        ({"entry": struct.pack("<5i", 3, 0, 40, 16, 1)}, "expected a first row"),
        ({"entry": struct.pack("<5i", 2, 7, 40, 16, 1)}, "expected a highest level"),
        ({"codes_kind": b"IxPQ"}, "expected the kind of codes"),
        ({"numbers": struct.pack("<iifQQ", 1, 0, 0.0, 2, 2)}, "expected the kind of numbers"),
        ({"numbers": struct.pack("<iifQQ", 0, 0, 0.0, 2, 2**50)}, "expected the bytes of a code"),
        ({"ranges": vector("<f4", -1, np.nan, 2, 2)}, "expected finite ranges"),
        ({"codes": vector("u1", 1)}, "expected codes to be 6, found 1"),
        ({"end": b"more"}, "expected no further bytes"),
    ],
)
def test_another_content_is_refused(changes: dict, message: str, tmp_path: Path) -> None:
    (tmp_path / "g").write_bytes(graph(**changes))
    with pytest.raises(ValueError, match=message) as error:
        check_graph_file(tmp_path / "g", rows=ROWS, dimension=DIMENSION)
    assert str(tmp_path / "g") in str(error.value)


def test_a_graph_that_ends_anywhere_is_refused(tmp_path: Path) -> None:
    whole = graph()
    for size in range(0, len(whole), 5):
        (tmp_path / "g").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=f"{tmp_path}"):
            check_graph_file(tmp_path / "g", rows=ROWS, dimension=DIMENSION)


def test_a_damaged_graph_of_an_older_version_takes_no_memory_and_no_time(tmp_path: Path) -> None:
    """FAISS trusted the lengths in a file: one changed byte cost 12 GiB, or six seconds."""
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    folder = tmp_path / "all" / "index"
    folder.parent.mkdir()
    write_index(folder, "hnsw", hashes=False)
    path = folder / "graph.faiss"
    content = path.read_bytes()
    check_graph_file(path, rows=12, dimension=8)
    for place in range(0, len(content), 11):
        path.write_bytes(Damage("flip", place, place + 7).change(content))
        check_reading(answer, folder, path)


def test_a_graph_that_someone_wrote_on_purpose_is_refused(tmp_path: Path) -> None:
    """Correct hashes show only that nothing changed since they were written."""
    pytest.importorskip("faiss", reason="the extra `search` is not installed")
    folder = tmp_path / "index"
    write_index(folder, "hnsw")
    record = IndexRecord.read(folder)
    path = folder / "graph.faiss"
    content = bytearray(path.read_bytes())
    content[content.index(np.array([-1, -1], "<i4").tobytes())] = 0x7F  # an edge to row −129
    path.write_bytes(content)
    for name in ("hashes.bin", "index.json"):
        (folder / name).unlink()
    record.write(folder)
    with pytest.raises(ValueError, match="expected neighbours that are rows"):
        answer(folder)
