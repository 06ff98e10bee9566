"""The user's cache folder: its entries, its size and its limit.

It holds models that were converted after a download (`models`), archives that were unpacked
(`archives`), graphs of models for ONNX Runtime (`engines`), copies of remote files (`remote`), and
the records of names (`names`). The downloads of huggingface_hub and kagglehub lie in their own
caches.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from use_st5.io.files import REMOTE, UPLOAD
from use_st5.io.files import cache_folder as cache_folder

MODELS, ARCHIVES, ENGINES = "models", "archives", "engines"
NAMES = "names"
# The environment variable with the limit of models, archives and engines together, in GB of 10⁹
# bytes.
LIMIT = "USE_ST5_CACHE_GB"
_DEFAULT_LIMIT = 20.0
# A file next to the content of an entry. Its first line names the source of the entry, and the time
# of its last change is when the entry was last used.
_ORIGIN = "origin.txt"
_CONTENT = "content"
# How the names of folders begin that a process makes or removes.
_TEMPORARY = "tmp"
_OLD = 24 * 3600.0  # seconds after which a temporary folder belongs to no process


class Entry(NamedTuple):
    """A folder of the cache.

    Attributes:
        kind: The part of the cache: "models", "archives", "engines" or "remote".
        origin: The name of its source; a hash if the source is not recorded.
        folder: Where it lies.
        size: Bytes of its files.
        used: When it was last used, in seconds since 1970.
    """

    kind: str
    origin: str
    folder: Path
    size: int
    used: float


def entries() -> list[Entry]:
    """Returns all models, archives, engines and remote copies, the last used one first."""
    found = []
    for part in (MODELS, ARCHIVES, ENGINES, REMOTE):
        for folder in cache_folder(part).iterdir():
            if folder.is_dir() and not folder.name.startswith((".", _TEMPORARY, UPLOAD)):
                with contextlib.suppress(FileNotFoundError):  # Another process removes it.
                    found.append(_entry(part, folder))
    return sorted(found, key=lambda entry: entry.used, reverse=True)


def remove_leftovers() -> None:
    """Removes what processes left that were killed while they made or removed an entry."""
    for part in (MODELS, ARCHIVES, ENGINES, REMOTE):
        for folder in cache_folder(part).glob(f"{_TEMPORARY}*"):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _OLD:
                    shutil.rmtree(folder, ignore_errors=True)


def remove_entry(folder: Path) -> None:
    """Removes the folder of an entry, if there is one."""
    # Under another name first: an interruption must not leave an entry with some of its files.
    with contextlib.suppress(OSError):
        doomed = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=folder.parent), folder.name)
        folder.rename(doomed)
        shutil.rmtree(doomed.parent, ignore_errors=True)


def kept_content(
    part: str,
    key: str,
    origin: str,
    make: Callable[[Path], object],
    *,
    is_intact: Callable[[Path], bool] = lambda content: True,
) -> Path:
    """Returns the content of an entry, which is made if it does not exist or is damaged.

    The entry appears when it is complete; the first of several processes wins. Then the entries
    that were not used for the longest time are removed until the limit holds, but not this one.
    `make` writes the content at the path that it gets; `origin` names its source.
    """
    folder = cache_folder(part) / key
    content = folder / _CONTENT
    if content.is_dir() and is_intact(content):
        with contextlib.suppress(OSError):  # It is used now. Another process may remove it.
            os.utime(folder / _ORIGIN)
        return content
    if content.is_dir():
        remove_entry(folder)
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=cache_folder(part)) as temporary:
        new_folder = Path(temporary, key)
        new_folder.mkdir()
        make(new_folder / _CONTENT)
        (new_folder / _ORIGIN).write_text(origin + "\n", encoding="utf-8")
        try:
            new_folder.rename(folder)
        except OSError:
            if not content.is_dir():
                raise
    remove_leftovers()
    bounded_entries = [each for each in entries() if each.kind != REMOTE]
    total, max_bytes = sum(entry.size for entry in bounded_entries), limit()
    for entry in reversed(bounded_entries):
        if total > max_bytes and entry.folder != folder:
            remove_entry(entry.folder)
            total -= entry.size
    return content


def limit() -> int:
    """The largest size of models, archives and engines together, in bytes."""
    setting = os.environ.get(LIMIT, "")
    with contextlib.suppress(ValueError, OverflowError):
        if (number := float(setting or _DEFAULT_LIMIT)) >= 0:
            return int(number * 1e9)
    raise ValueError(f"{LIMIT}: expected a number of GB, received {setting!r}.")


def _entry(part: str, folder: Path) -> Entry:
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    origin = folder / _ORIGIN
    if origin.is_file():
        first_line = origin.read_text(encoding="utf-8").partition("\n")[0]
        return Entry(part, first_line, folder, size, origin.stat().st_mtime)
    return Entry(part, folder.name, folder, size, folder.stat().st_mtime)
