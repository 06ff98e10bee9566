"""Models by name: `hf://ORG/NAME@REVISION`, `kaggle://…`, and archives by URL.

`local_source` is the one place that turns such a name into files of this machine. It downloads them
once. A record in the cache keeps what was downloaded, so that later runs need no network and get
the same files, until `use-st5 cache --clear NAME` removes the record.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path

import msgspec

from use_st5.hub.cache import NAMES, cache_folder
from use_st5.hub.client import from_archive, from_hugging_face, from_kaggle
from use_st5.io.files import atomic_path
from use_st5.io.records import read_record
from use_st5.io.remote_files import cached_path

# `Path` makes one slash of two.
_NAME = re.compile(r"(hf|kaggle|https?):/{1,2}(?=[^/])(.+)", re.DOTALL)
_SOURCES = {
    **{"hf": from_hugging_face, "kaggle": from_kaggle},
    **{"https": from_archive, "http": from_archive},
}
_FORMAT = 1


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was downloaded under a name.

    Attributes:
        name: Its name, as the user writes it.
        identity: The commit, version or hash of what was downloaded.
        folder: The folder with its files.
    """

    name: str
    identity: str
    folder: str
    format: int = _FORMAT

    @property
    def exact_name(self) -> str:
        """The name with the identity of the download: it always means the same files."""
        return f"{self.name.partition('@')[0]}@{self.identity}"


def model_name(path: str | os.PathLike[str]) -> str | None:
    """Returns a name as the user writes it; None if `path` is a path or a bundled model.

    Examples:
        >>> model_name(Path("hf://sentence-transformers/all-MiniLM-L6-v2"))
        'hf://sentence-transformers/all-MiniLM-L6-v2'
    """
    found = _NAME.fullmatch(os.fspath(path))
    return f"{found[1]}://{found[2]}" if found else None


def short_name(path: str | os.PathLike[str]) -> str:
    """Returns a name without place, owner and revision; for a path, the name of the folder."""
    name = model_name(path)
    if name is None:
        return Path(path).resolve().name
    name = name.partition("?")[0]
    last = re.sub(r"(@.*|\.tar\.gz|\.tgz|\.zip|/\d+)$", "", name).split("/")[-1]
    return re.sub(r"[^\w.-]", "_", last)


def local_source(path: str | os.PathLike[str]) -> Path:
    """Returns the local path of a model or checkpoint, given by a name or by any path."""
    name = model_name(path)
    return cached_path(path) if name is None else Path(fetch(name).folder)


def fetch(name: str) -> Fetched:
    """Downloads a model by the name that `model_name` returns, or finds the earlier download."""
    path = _record(name)
    with contextlib.suppress(OSError, ValueError):
        record = read_record(path, Fetched, remedy="", version=_FORMAT)
        if record.name == name and Path(record.folder).is_dir():
            return record
    folder, identity = _SOURCES[name.partition(":")[0]](name)
    record = Fetched(name=name, identity=identity, folder=os.fspath(folder))
    with atomic_path(path) as temporary:
        temporary.write_bytes(msgspec.json.encode(record))
    return record


def forget(name: str) -> bool:
    """Removes the record of a name: its next use asks the hub again. Says if there was one."""
    path = _record(name)
    existed = path.is_file()
    path.unlink(missing_ok=True)
    return existed


def recorded() -> list[Fetched]:
    """Returns the records of all names that were used; damaged records are left out."""
    records = []
    for path in sorted(cache_folder(NAMES).glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            records.append(read_record(path, Fetched, remedy="", version=_FORMAT))
    return records


def _record(name: str) -> Path:
    # Another server may have other files under the same name.
    server = os.environ.get("HF_ENDPOINT", "") if name.startswith("hf:") else ""
    digest = hashlib.sha256(f"{server}\n{name}".encode()).hexdigest()[:16]
    return cache_folder(NAMES) / f"{digest}.json"
