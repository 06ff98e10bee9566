from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.search.damages import Drawn, answer, write_index
from use_st5.search.vector_index import VectorIndex

KINDS = ("exact", "int8", "binary", "hnsw")


def written(folder: Path, kind: str, **options: bool) -> Path:
    if kind == "hnsw":
        pytest.importorskip("faiss", reason="the extra `search` is not installed")
    write_index(folder / "index", kind, **options)
    return folder / "index"


@pytest.mark.parametrize("kind", ["int8", "hnsw"])
def test_no_damaged_byte_gives_another_answer(kind: str, tmp_path: Path) -> None:
    """Many bytes of each file are others in turn: an error names a file, or nothing changes."""
    folder = written(tmp_path, kind)
    whole, refused = answer(folder), 0
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for place in range(0, len(content), 5):
            changed = bytearray(content)
            changed[place] ^= 1 << place % 8
            path.write_bytes(changed)
            try:
                assert answer(folder) == whole, f"{path.name}: byte {place}"
            except ValueError as error:
                refused += 1
                assert str(folder) in str(error), f"{path.name}: byte {place}: {error}"
                known = "Make the index again with `use-st5 index", "Update use_st5"
                assert any(each in str(error) for each in known), error
        path.write_bytes(content)
    assert refused > 300
    assert answer(folder) == whole


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_of_an_older_version_gives_the_same(kind: str, tmp_path: Path) -> None:
    folder = written(tmp_path, kind, hashes=False)
    old = answer(folder)
    VectorIndex(folder).verify()
    write_index(folder, kind)  # takes its place
    assert answer(folder) == old
    VectorIndex(folder).verify()


def number(place: int, value: float) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        array.reshape(-1)[place] = value

    return change


@pytest.mark.parametrize("hashes", [True, False])
@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("exact", "vectors.npy", number(3, np.nan)),
        ("exact", "vectors.npy", number(3, 7.0)),
        ("int8", "vectors.npy", number(3, np.inf)),
        ("int8", "scales.npy", number(2, np.nan)),
        ("int8", "scales.npy", number(2, -1.0)),
        ("exact", "starts.npy", number(0, 1)),
        ("exact", "starts.npy", number(4, 2**40)),
        ("exact", "starts.npy", number(4, -5)),
        ("exact", "starts.npy", number(-1, 3)),
        ("exact", "texts.utf8", number(2, 255)),
    ],
)
def test_orders_and_ranges_are_checked_without_hashes_too(
    kind: str, name: str, change: Callable, hashes: bool, tmp_path: Path
) -> None:
    folder = written(tmp_path, kind, hashes=hashes)
    if name.endswith(".npy"):
        array = np.load(folder / name)
        change(array)
        np.save(folder / name, array)
    else:
        array = np.fromfile(folder / name, np.uint8)
        change(array)
        array.tofile(folder / name)
    for read in (answer, lambda folder: VectorIndex(folder).verify()):
        with pytest.raises(ValueError, match=rf"{name}: expected .* Make the index again with"):
            read(folder)


def test_a_search_reads_the_vectors_that_it_scores_alone(tmp_path: Path) -> None:
    """A million vectors are not read for one query; `verify` reads them."""
    vectors = np.random.default_rng(0).standard_normal((40_000, 8)).astype(np.float32)
    index = VectorIndex.build(tmp_path / "index", vectors, encoder=Drawn(), kind="int8")
    query = vectors[:1]
    path = tmp_path / "index" / "vectors.npy"
    scores, rows = index.search_vectors(query, k=1)
    content = bytearray(path.read_bytes())
    far = 39_999 if rows.max() < 20_000 else 0
    content[128 + 32 * far + 1] ^= 1
    path.write_bytes(content)
    again = VectorIndex(tmp_path / "index")
    np.testing.assert_array_equal(again.search_vectors(query, k=1), (scores, rows))
    with pytest.raises(ValueError, match=r"vectors\.npy: expected the bytes that were written"):
        again.search_vectors(vectors[far : far + 1], k=1)
    with pytest.raises(ValueError, match=r"vectors\.npy: expected the bytes that were written"):
        again.verify()


def test_the_files_of_a_kind_must_be_named(tmp_path: Path) -> None:
    folder = written(tmp_path, "int8", hashes=False)
    path = folder / "index.json"
    path.write_text(path.read_text().replace('"scales.npy"', '"../scales"'))
    with pytest.raises(ValueError, match=r"index\.json: .*expected a path inside|Expected a path"):
        VectorIndex(folder)
    path.write_text(path.read_text().replace('"../scales"', '"scales.npx"'))
    with pytest.raises(ValueError, match=r"index\.json: \$\.files: expected scales\.npy"):
        VectorIndex(folder)
