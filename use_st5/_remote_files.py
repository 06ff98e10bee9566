"""Files elsewhere: gs://, s3:// and every other file system that TensorFlow knows (`tf.io.gfile`).

What we read and write through libraries that know local files alone is brought here first, or
carried there when it is whole. An object store can neither rename a folder nor lock a file: a
folder is carried so that the small JSON file that describes it comes last, and counts from then on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType

from use_st5._imports import require

# `Path` makes one slash of two. A scheme has two letters or more: Windows' drives have one.
_REMOTE = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])(.*)", re.DOTALL)
# Addresses that are no files to TensorFlow.
_NO_FILES = ("http", "https", "hf")
_CACHE = "use_st5/remote"


def remote_path(path: str | os.PathLike[str]) -> str | None:
    """The path as TensorFlow writes it, `gs://bucket/name`; None where it is a local one."""
    match = _REMOTE.fullmatch(os.fspath(path))
    if match is None or match[1] in _NO_FILES:
        return None
    return f"{match[1]}://{match[2].rstrip('/')}"


def as_written(path: str | os.PathLike[str]) -> str:
    """The path as one writes it: a `Path` of gs://bucket/name has lost a slash."""
    return remote_path(path) or os.fspath(path)


def check_inner(path: str | os.PathLike[str]) -> None:
    """Checks that a path elsewhere lies in a bucket, and is not the whole of it.

    Raises:
        ValueError: It is.
    """
    remote = remote_path(path)
    if remote and not remote.partition("://")[2].partition("/")[2]:
        raise ValueError(f"{remote}: expected a path in the bucket, such as {remote}/NAME.")


@contextlib.contextmanager
def here(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A copy of a file or folder elsewhere that lives as long as the block; a local path itself.

    For what is read once; `brought` keeps its copies. Where there is nothing, there is no copy.
    """
    remote = remote_path(path)
    if remote is None:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, PurePosixPath(remote).name)
        bring(remote, local)
        yield local


def brought(path: str | os.PathLike[str]) -> Path:
    """A local copy of a file or folder elsewhere; a local path as it is.

    Copies lie in the user's cache folder; one is made anew unless the names, sizes and times there
    are still those it was made from.

    Raises:
        FileNotFoundError: There is nothing.
    """
    remote = remote_path(path)
    if remote is None:
        return Path(path)
    from use_st5._files import atomic_path  # Which carries with us.

    found = _listing(remote)
    if not found:
        raise FileNotFoundError(f"{remote}: expected a file or a folder with files, found none.")
    digest = hashlib.sha256(repr((remote, sorted(found.items()))).encode()).hexdigest()[:16]
    target = _cache() / digest / PurePosixPath(remote).name
    if not target.exists():
        with atomic_path(target) as temporary:
            bring(remote, temporary)
    return target


def bring(remote: str, local: Path) -> None:
    """Copies a file or a folder elsewhere to a local path, at which nothing is."""
    files = _files_of_tensorflow(remote)
    for name in _listing(remote):
        target = local / name if name else local
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(files, f"{remote}/{name}" if name else remote, os.fspath(target))


@contextlib.contextmanager
def carried(path: str) -> Iterator[Path]:
    """Gives a temporary local path; the file or folder made there is carried to `path`.

    An older file or folder is replaced, not in one step: where the process is killed in between, a
    folder lacks the JSON file that describes it.

    Raises:
        FileNotFoundError: The block ended without creating anything.
    """
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, PurePosixPath(path).name)
        yield local
        if not local.exists():
            raise FileNotFoundError(f"Expected something to be written for {path}, found nothing.")
        carry(local, path)


def carry(local: Path, path: str) -> None:
    """Copies a local file or folder to `path` elsewhere, as `carried` does."""
    remove(path)
    files = _files_of_tensorflow(path)
    if local.is_file():
        files.makedirs(path.rpartition("/")[0])
        _copy(files, os.fspath(local), path)
        return
    below = (each for each in local.rglob("*") if each.is_file())
    for each in sorted(below, key=_carried_last):
        target = f"{path}/{each.relative_to(local).as_posix()}"
        files.makedirs(target.rpartition("/")[0])
        _copy(files, os.fspath(each), target)


def place_for(path: str) -> Path:
    """Where, in the cache, a file is made piece by piece before it is carried to `path`."""
    digest = hashlib.sha256(path.encode()).hexdigest()[:16]
    return _cache() / f"to-{digest}" / PurePosixPath(path).name


def remove(path: str) -> None:
    """Removes a file or folder elsewhere, the JSON files that describe it first."""
    files = _files_of_tensorflow(path)
    names = [PurePosixPath(name) for name in _listing(path)]
    for name in sorted(names, key=_carried_last, reverse=True):
        files.remove(f"{path}/{name}" if name.name else path)
    if files.isdir(path):
        files.rmtree(path)


def names_in(path: str | os.PathLike[str]) -> list[str]:
    """The names in a folder, here or elsewhere; none where there is no such folder."""
    remote = remote_path(path)
    if remote is None:
        return [each.name for each in Path(path).iterdir()] if Path(path).is_dir() else []
    files = _files_of_tensorflow(remote)
    return [name.rstrip("/") for name in files.listdir(remote)] if files.isdir(remote) else []


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file or folder, here or elsewhere."""
    remote = remote_path(path)
    if remote is None:
        return Path(path).exists()
    return bool(_files_of_tensorflow(remote).exists(remote))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", _CACHE)


def _carried_last(path: Path | PurePosixPath) -> tuple[bool, int, str]:
    # Of two JSON files the outer one describes the whole.
    return path.suffix == ".json", -len(path.parts), path.as_posix()


def _listing(remote: str) -> dict[str, tuple[int, int]]:
    """Name below the path, "" for a file itself → bytes and time, of every file."""
    files = _files_of_tensorflow(remote)
    if not files.exists(remote):
        return {}
    if not files.isdir(remote):
        return {"": _sign(files, remote)}
    found = {}
    for folder, _, names in files.walk(remote):
        for name in names:
            path = f"{folder.rstrip('/')}/{name}"
            found[path.removeprefix(remote).lstrip("/")] = _sign(files, path)
    return found


def _sign(files: ModuleType, path: str) -> tuple[int, int]:
    facts = files.stat(path)
    return facts.length, facts.mtime_nsec


def _copy(files: ModuleType, source: str, target: str) -> None:
    # `gfile.copy` refuses some pairs of file systems.
    with files.GFile(source, "rb") as read, files.GFile(target, "wb") as written:
        while block := read.read(2**24):
            written.write(block)


def _files_of_tensorflow(remote: str) -> ModuleType:
    files: ModuleType = require("tensorflow", "tensorflow").io.gfile
    scheme, known = remote.partition("://")[0], files.get_registered_schemes()
    if scheme not in known:
        raise ValueError(
            f"{remote}: expected a scheme that TensorFlow knows, "
            f"{', '.join(f'{each}://' for each in sorted(known) if each)}; import the package that "
            "brings another (tensorflow-io for s3:// and the like) before."
        )
    return files
