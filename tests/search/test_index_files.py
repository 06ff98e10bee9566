from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.search.damages import answer, write_index
from use_st5.search.index_files import CheckedFile, read_hashes, write_hashes
from use_st5.search.vector_index import VectorIndex

BLOCK = 2**16


REMEDY = "Make it again."


@pytest.fixture
def damaged(tmp_path: Path) -> CheckedFile:
    """A file of two blocks and 100 bytes; a byte of the second block changed after the hashing."""
    path, hashes = tmp_path / "file", tmp_path / "hashes"
    content = bytearray(np.random.default_rng(0).bytes(2 * BLOCK + 100))
    path.write_bytes(content)
    roots = write_hashes(hashes, [path])
    found = read_hashes(hashes, {"file": len(content)}, roots, remedy=REMEDY)
    content[BLOCK + 5] ^= 1
    path.write_bytes(content)
    return CheckedFile(path, found["file"], remedy=REMEDY)


def stretches(*pairs: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    starts, ends = zip(*pairs, strict=True)
    return np.array(starts), np.array(ends)


@pytest.mark.parametrize("pairs", [[(0, BLOCK), (2 * BLOCK, 2 * BLOCK + 100)], [(BLOCK, BLOCK)]])
def test_other_blocks_may_be_read(damaged: CheckedFile, pairs: list[tuple[int, int]]) -> None:
    damaged.check_bytes(*stretches(*pairs))
    damaged.path.write_bytes(b"")  # Checked blocks are not read again.
    damaged.check_bytes(*stretches(*pairs))


@pytest.mark.parametrize(
    "pairs", [[(BLOCK + 90, BLOCK + 91)], [(0, 1), (3, 2 * BLOCK + 1)], [(BLOCK - 1, BLOCK + 1)]]
)
def test_a_damaged_block_is_named(damaged: CheckedFile, pairs: list[tuple[int, int]]) -> None:
    named = r"file: expected the bytes that were written, .* byte 65,536 on.* Make it again\."
    with pytest.raises(ValueError, match=named):
        damaged.check_bytes(*stretches(*pairs))
    with pytest.raises(ValueError, match=named):  # the block does not count as checked
        damaged.check()


def test_without_hashes_nothing_is_checked(tmp_path: Path) -> None:
    file = CheckedFile(tmp_path / "none", None, remedy=REMEDY)
    file.check()
    file.check_bytes(*stretches((0, 10)))


def test_damaged_hashes_are_named(tmp_path: Path) -> None:
    path, hashes = tmp_path / "file", tmp_path / "hashes"
    path.write_bytes(b"some bytes")
    roots = write_hashes(hashes, [path])
    hashes.write_bytes(b"x" + hashes.read_bytes()[1:])
    with pytest.raises(ValueError, match="hashes: expected the hashes of file that were written"):
        read_hashes(hashes, {"file": 10}, roots, remedy=REMEDY)
    hashes.write_bytes(b"")
    with pytest.raises(ValueError, match="hashes: expected 16 bytes, found 0"):
        read_hashes(hashes, {"file": 10}, roots, remedy=REMEDY)


def written(folder: Path, kind: str, **options: bool) -> Path:
    if kind == "hnsw":
        pytest.importorskip("faiss", reason="the extra `search` is not installed")
    write_index(folder / "index", kind, **options)
    return folder / "index"


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_no_damaged_byte_gives_another_answer(kind: str, tmp_path: Path) -> None:
    """Changes many bytes of each file in turn: an error names a file, or the answer is the same."""
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
    assert refused > 250
    assert answer(folder) == whole


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_an_index_of_an_older_version_gives_the_same(kind: str, tmp_path: Path) -> None:
    folder = written(tmp_path, kind, hashes=False)
    old = answer(folder)
    VectorIndex(folder).verify()
    write_index(folder, kind)  # replaces the old index
    assert answer(folder) == old
    VectorIndex(folder).verify()


@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_the_kinds_of_an_older_version_are_searched_exactly(kind: str, tmp_path: Path) -> None:
    old = written(tmp_path / "old", kind)
    VectorIndex(old).verify()
    assert answer(old) == answer(written(tmp_path / "new", "exact"))
    write_index(old, "exact")  # replaces the old index
    assert not (old / "codes.npy").exists()


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
        ("exact", "vectors.npy", number(3, np.inf)),
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
