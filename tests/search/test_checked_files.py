from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from use_st5.search.checked_files import CheckedFile, read_hashes, write_hashes

BLOCK = 2**16
REMEDY = "Make it again."


@pytest.fixture
def damaged(tmp_path: Path) -> CheckedFile:
    """A file of two blocks and a bit, of whose second block a byte changed after the hashes."""
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
    damaged.path.write_bytes(b"")  # What was checked is not read again.
    damaged.check_bytes(*stretches(*pairs))


@pytest.mark.parametrize(
    "pairs", [[(BLOCK + 90, BLOCK + 91)], [(0, 1), (3, 2 * BLOCK + 1)], [(BLOCK - 1, BLOCK + 1)]]
)
def test_a_damaged_block_is_named(damaged: CheckedFile, pairs: list[tuple[int, int]]) -> None:
    named = r"file: expected the bytes that were written, .* byte 65,536 on.* Make it again\."
    with pytest.raises(ValueError, match=named):
        damaged.check_bytes(*stretches(*pairs))
    with pytest.raises(ValueError, match=named):  # and not taken for checked
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
