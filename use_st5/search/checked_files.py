"""Files whose bytes are held against hashes: small ones at once, mapped ones when first read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

# Bytes that share a hash. A search that scores a few rows reads a block around each; the hashes
# are a 4,096th of the files.
_BLOCK = 2**16
_DIGEST = 16  # bytes of a hash of SHA-256 that are kept


class CheckedFile:
    """A file, each block of which is read and held against its hash once.

    Args:
        path: The file.
        digests: The hashes of its blocks, uint8 `[blocks, 16]`; None: there are none, and no byte
            is checked.
        remedy: What to do about a damaged file, a sentence.
    """

    def __init__(self, path: Path, digests: np.ndarray | None, *, remedy: str) -> None:
        self.path = path
        self.has_hashes = digests is not None
        self._remedy = remedy
        self._digests = np.empty((0, _DIGEST), np.uint8) if digests is None else digests
        self._unread = np.ones(len(self._digests), bool)

    def check(self) -> None:
        """Checks the bytes that were not checked yet.

        Raises:
            ValueError: They are not those that were written.
        """
        self._check_blocks(np.arange(len(self._digests)))

    def check_bytes(self, starts: np.ndarray, ends: np.ndarray) -> None:
        """Checks the blocks of stretches of bytes, int64 `[stretches]`, as `check`."""
        filled = ends > starts
        if not self.has_hashes or not filled.any():
            return
        first, last = starts[filled] // _BLOCK, (ends[filled] - 1) // _BLOCK
        widest = int((last - first).max()) + 1
        # Stretches are short beside a block, or they are a few: a line of blocks for each is small.
        self._check_blocks(np.unique(np.minimum(first[:, None] + np.arange(widest), last[:, None])))

    def _check_blocks(self, blocks: np.ndarray) -> None:
        """Checks some blocks, int64 `[blocks]`, in their order."""
        blocks = blocks[self._unread[blocks]]
        if not len(blocks):
            return
        with self.path.open("rb") as file:
            for block in blocks.tolist():
                file.seek(block * _BLOCK)
                if _digest(file.read(_BLOCK)) != self._digests[block].tobytes():
                    raise ValueError(
                        f"{self.path}: expected the bytes that were written, found others from "
                        f"byte {block * _BLOCK:,} on: the file is damaged. {self._remedy}"
                    )
                self._unread[block] = False


def write_hashes(target: Path, files: Sequence[Path]) -> dict[str, str]:
    """Writes the hashes of the blocks of files, one after the other.

    Args:
        target: The file to write.
        files: The files, all in one folder.

    Returns:
        A hash of the hashes of each file by the file's name, in hexadecimal digits.
    """
    roots = {}
    with target.open("wb") as hashes:
        for path in files:
            digests = _file_digests(path)
            roots[path.name] = _digest(digests).hex()
            hashes.write(digests)
    return roots


def read_hashes(
    source: Path, sizes: Mapping[str, int], roots: Mapping[str, str], *, remedy: str
) -> dict[str, np.ndarray]:
    """Reads what `write_hashes` has written.

    Args:
        source: The file of hashes.
        sizes: The bytes of each file by its name, in the order of the hashes.
        roots: What `write_hashes` gave.
        remedy: What to do about a damaged file, a sentence.

    Returns:
        The hashes of each file's blocks by the file's name, uint8 `[blocks, 16]`.

    Raises:
        ValueError: They are not those that were written.
    """
    counts = {name: -(-size // _BLOCK) for name, size in sizes.items()}
    expected = _DIGEST * sum(counts.values())
    if (found := source.stat().st_size) != expected:
        raise ValueError(f"{source}: expected {expected} bytes, found {found}. {remedy}")
    digests = {}
    with source.open("rb") as file:
        for name, count in counts.items():
            content = file.read(_DIGEST * count)
            if _digest(content).hex() != roots.get(name):
                raise ValueError(
                    f"{source}: expected the hashes of {name} that were written, found others: the "
                    f"file is damaged. {remedy}"
                )
            digests[name] = np.frombuffer(content, np.uint8).reshape(-1, _DIGEST)
    return digests


def text_hash(text: str) -> str:
    """A hash of a text, in hexadecimal digits."""
    return _digest(text.encode("utf-8", "surrogatepass")).hex()


def _file_digests(path: Path) -> bytes:
    digests = bytearray()
    with path.open("rb") as file:
        while content := file.read(_BLOCK):
            digests += _digest(content)
    return bytes(digests)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:_DIGEST]
