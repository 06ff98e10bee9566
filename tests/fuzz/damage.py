"""Ways to damage a file, and a check of readers that get such a file."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

_SECONDS, _MEMORY = 5.0, 200 * 2**20
# Numbers of zero bytes after the content: if a file's size is known beforehand, and if texts of
# any length are read.
_SPARSE, _SPARSE_TEXT = 2**30, 2**24
# The errors with which a reader may refuse a file; the message must name the file, too.
_SPOKEN = (ValueError, OSError, ImportError)
_DEEP = 100_000
# Address space in bytes: more than mapped sparse files need, less than machines have.
_ROOM = 4 * 2**30

_NUMBERS = [b"-1", b"0", b"1e9", b"20000", b"10000000", b"100000000", b"99999999999999999999"]
_NUMBERS += [
    b"1e999",
    b"NaN",
    b"-Infinity",
    b'"7"',
    b"0.5",
    b"null",
    b"[1]",
    b"true",
    b"1" * 5000,
    b"9" * 400,
]
_VALUES: list[Any] = [None, True, -1, 0, 0.5, 10**8, 10**20, float("nan"), float("inf"), "", "x"]
_VALUES += ["../../etc/passwd", "/etc/passwd", "\ud800", "<U1", "x" * 10_000, [], {}, [[]], {"": 0}]
_STRETCHES = [b"\0", b"\xff", b"\n", b"\t", b'"', b"{", b"[", b"]", b"}", b",", b"\xed\xa0\x80"]
_STRETCHES += [b"\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"-1", b"1e999", b"nan", b"||", b" " * 100]


@dataclass(frozen=True)
class Damage:
    """One change.

    Attributes:
        kind: A key of `CHANGES`, or of `_REPLACED` if the whole file is replaced.
        place: The place of the change, modulo the number of places.
        value: The new value, modulo the number of values.
    """

    kind: str
    place: int = 0
    value: int = 0

    def change(self, content: bytes) -> bytes:
        """Returns the damaged content."""
        return CHANGES[self.kind](content, self.place, self.value)


def _cut(content: bytes, place: int, value: int) -> bytes:
    return content[: place % (len(content) + 1)]


def _flip(content: bytes, place: int, value: int) -> bytes:
    changed = bytearray(content or b"\0")
    changed[place % len(changed)] ^= 1 << value % 8
    return bytes(changed)


def _insert(content: bytes, place: int, value: int) -> bytes:
    start = place % (len(content) + 1)
    return content[:start] + _STRETCHES[value % len(_STRETCHES)] + content[start:]


def _delete(content: bytes, place: int, value: int) -> bytes:
    start = place % (len(content) + 1)
    return content[:start] + content[start + 1 + value % 64 :]


def _zeros(content: bytes, place: int, value: int) -> bytes:
    start, size = place % (len(content) + 1), 1 + value % 512
    return content[:start] + b"\0" * len(content[start : start + size]) + content[start + size :]


def _repeat(content: bytes, place: int, value: int) -> bytes:
    start = place % (len(content) + 1)
    return content[: start + value % 256] + content[start:]


def _number(content: bytes, place: int, value: int) -> bytes:
    """Replaces a number in a text by another number or by something else."""
    found = [*re.finditer(rb"-?\d+(?:\.\d+)?", content)]
    if not found:
        return content
    start, end = found[place % len(found)].span()
    return content[:start] + _NUMBERS[value % len(_NUMBERS)] + content[end:]


def _fields(content: bytes, place: int, value: int) -> bytes:
    """Swaps two neighbours: lines or fields between tabs, commas or spaces."""
    separator = (b"\n", b"\t", b",", b" ")[value % 4]
    parts = content.split(separator)
    one = place % len(parts)
    parts[one], parts[one - 1] = parts[one - 1], parts[one]
    return separator.join(parts)


def _json_value(content: bytes, place: int, value: int) -> bytes:
    """Replaces a value somewhere in JSON, or removes it."""
    tree = _parsed(content)
    places = [*_places(tree)]
    if not places:
        return content
    tree = copy.deepcopy(tree)
    *path, last = places[place % len(places)]
    parent = tree
    for key in path:
        parent = parent[key]
    if value % (len(_VALUES) + 1) == len(_VALUES):
        del parent[last]
    else:
        parent[last] = _VALUES[value % len(_VALUES)]
    return json.dumps(tree).encode()


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Any:
    """The paths of all values in JSON, but only of the first 20 items of each list."""
    if isinstance(tree, dict | list):
        keys = tree if isinstance(tree, dict) else range(min(len(tree), 20))
        for key in keys:
            yield (*path, key)
            yield from _places(tree[key], (*path, key))


def _nest(content: bytes, place: int, value: int) -> bytes:
    """Writes a value 100,000 brackets deep: as the whole content, or in place of a number."""
    deep = (b"[" * _DEEP + b"]" * _DEEP, b'{"a":' * _DEEP + b"1" + b"}" * _DEEP)[value % 2]
    found = [*re.finditer(rb"\d+", content)]
    if not found or value % 3 == 0:
        return deep
    start, end = found[place % len(found)].span()
    return content[:start] + deep + content[end:]


CHANGES: dict[str, Callable[[bytes, int, int], bytes]] = {
    "cut": _cut,
    "flip": _flip,
    "insert": _insert,
    "delete": _delete,
    "zeros": _zeros,
    "repeat": _repeat,
    "number": _number,
    "fields": _fields,
    "json_value": _json_value,
    "nest": _nest,
}


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _sparse(path: Path, size: int = _SPARSE) -> None:
    """Appends zero bytes, which take no space on the disk."""
    os.truncate(path, path.stat().st_size + size)


_REPLACED: dict[str, Callable[[Path], None]] = {
    "folder": _folder,
    "empty": _empty,
    "missing": Path.unlink,
    "sparse": _sparse,
    "sparse_text": functools.partial(_sparse, size=_SPARSE_TEXT),
}

_PLACES, _PICKS = st.integers(0, 2**24), st.integers(0, 511)
_CHANGED = st.builds(Damage, st.sampled_from(sorted(CHANGES)), _PLACES, _PICKS)


def damages(*, of_text: bool) -> st.SearchStrategy[list[Damage]]:
    """Draws one to three changes, or a replacement of the whole file.

    Args:
        of_text: Whether texts of any length are read.
    """
    kinds = sorted(_REPLACED.keys() - {"sparse" if of_text else "sparse_text"})
    replaced = st.sampled_from(kinds).map(lambda kind: [Damage(kind)])
    return st.one_of(st.lists(_CHANGED, min_size=1, max_size=3), replaced)


def damage(path: Path, changes: list[Damage]) -> None:
    """Damages a file."""
    for each in changes:
        if each.kind in _REPLACED:
            _REPLACED[each.kind](path)
        else:
            path.write_bytes(each.change(path.read_bytes()))


def check_reading(read: Callable[[Path], object], folder: Path, damaged: Path) -> bool:
    """Reads a damaged file: it can be read, or the error says which file it is.

    Args:
        read: The reader; it is given the folder.
        folder: The folder with all the reader's files.
        damaged: The damaged file.

    Returns:
        Whether it could be read.

    Raises:
        AssertionError: The error was of another kind or named no file, or reading took more than
            5 seconds of processor time or 200 MB of memory, or a file appeared beside the folder.
    """
    beside = sorted(folder.parent.iterdir())
    _forget_peak()
    memory, started = _memory("VmRSS"), time.process_time()
    error = _raised(read, folder)
    seconds, grown = time.process_time() - started, _memory("VmHWM") - memory
    assert sorted(folder.parent.iterdir()) == beside, "it wrote beside the folder"
    assert seconds < _SECONDS, f"it took {seconds:.0f} s"
    assert grown < _MEMORY, f"it took {grown >> 20} MB"
    if error is None:
        return True
    said = f"{type(error).__name__}: {error}"
    assert isinstance(error, _SPOKEN), said[:2000]
    assert damaged.name in said or str(folder) in said, f"no file is named: {said[:2000]}"
    return False


def _raised(read: Callable[[Path], object], folder: Path) -> Exception | None:
    try:
        with _bounded_memory():
            read(folder)
    except Exception as error:  # the caller checks its kind
        return error
    return None


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Limits the memory, so that a reader that asks for too much fails before the machine does."""
    if not Path("/proc/self/status").exists():
        yield
        return
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + _ROOM, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _memory(field: str) -> int:
    """The bytes in a field of /proc/self/status; 0 if there is no such file."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    found = re.search(rf"{field}:\s+(\d+) kB", status.read_text(encoding="utf-8"))
    return int(found[1]) * 1024 if found else 0


def _forget_peak() -> None:
    """Resets VmHWM, if the system allows it."""
    refs = Path("/proc/self/clear_refs")
    if os.access(refs, os.W_OK):
        refs.write_text("5", encoding="utf-8")


class Workbench:
    """A folder in which one file after the other is damaged and mended.

    Args:
        root: An empty folder.
        make: Writes the reader's files into a folder.

    Attributes:
        files: The names of the files.
        checked: The number of files damaged so far.
    """

    def __init__(self, root: Path, make: Callable[[Path], None]) -> None:
        self.checked = 0
        self._whole, self._folder = root / "whole", root / "sample"
        self._whole.mkdir(parents=True)
        make(self._whole)
        whole = (path for path in sorted(self._whole.rglob("*")) if path.is_file())
        self.files = [path.relative_to(self._whole).as_posix() for path in whole]

    def check(self, read: Callable[[Path], object], name: str, changes: list[Damage]) -> bool:
        """Damages one of `files` in a fresh copy and reads; see `check_reading`."""
        self.checked += 1
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._whole, self._folder)
        damage(self._folder / name, changes)
        return check_reading(read, self._folder, self._folder / name)
