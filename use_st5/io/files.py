"""Files and folders, local and remote: written completely or not at all; copies; their sha256.

Remote are gs://, s3:// and every other file system that TensorFlow knows (`tf.io.gfile`). Many
libraries read and write local files only. So a remote file is downloaded before it is read, and
what was written is uploaded when it is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import ModuleType
from typing import Any

from use_st5._imports import require

# The lock file in a folder, and the end of the name of one beside a file. Other programs write
# `.lock` and `.NAME.lock`, which must not be emptied and removed.
LOCK_FILE = ".use_st5.lock"
# A lock that is being given back can look taken for an instant.
_PATIENCE = 0.5
# What the names of temporary files and folders hold, and how that of an older folder ends while
# the folder is being replaced.
_MARK, _OLDER = ".use_st5-", ".older"
_TEMPORARY = re.compile(r"\.(.*)\.use_st5-[0-9a-f]{12}(.*?)(\.older)?", re.DOTALL)
# The file of a model's folder that names its files: in a remote folder only these are replaced.
FILE_LIST = "use_st5.json"
# `Path` makes one slash of two. A scheme has two letters or more: Windows' drives have one.
_REMOTE = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])(.*)", re.DOTALL)
# Schemes of addresses that TensorFlow does not open as files.
_NO_FILES = ("http", "https", "hf", "kaggle")
# How the name of a remote file ends until it replaces another.
_NEW = ".use_st5.new"
# The part of the cache with copies, and how the names of folders there begin whose files are not
# uploaded yet.
REMOTE, UPLOAD = "remote", "to-"


@contextlib.contextmanager
def sole_writer(
    path: str | os.PathLike[str], *, inside: bool = False, remote: bool = False
) -> Iterator[None]:
    """Makes this process the only one that writes the file or folder `path`, for a block.

    Another process is refused at once with a BlockingIOError. Blocks of one process may be nested.
    What killed writers of `path` left is removed. The operating system keeps the lock, and drops
    it when the process ends in any way. A hidden lock file says who holds the lock.

    Args:
        path: A file or folder, which need not exist.
        inside: Whether the lock file lies in the folder `path`, which is created, instead of next
            to it: for a folder that is written piece by piece.
        remote: Whether such a folder may be remote, because `atomic_path` writes its files.

    Remote files (gs:// and others) have no lock: only one process may write them.
    """
    if url := remote_path(path):
        if inside and not remote:
            raise ValueError(f"{url}: expected a local folder. Choose a local folder.")
        check_inner(url)
        yield
        return
    import filelock  # Only those who write need it.

    target = Path(os.path.realpath(path))
    file = target / LOCK_FILE if inside else target.with_name(f".{target.name}{LOCK_FILE}")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(file, thread_local=False, is_singleton=True)
    try:
        lock.acquire(timeout=_PATIENCE)
    except filelock.Timeout:
        holder = "another process"
        with contextlib.suppress(OSError, ValueError):
            holder = file.read_text(encoding="utf-8") or holder
        message = f"{target} is being written by {holder}: wait, or choose another path."
        raise BlockingIOError(message) from None
    try:
        if lock.lock_counter == 1:
            with contextlib.suppress(OSError):  # A full disk; Windows keeps others from reading it.
                file.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
            _remove_leftovers(file.parent, None if inside else target.name)
        yield
    finally:
        if lock.lock_counter == 1 and os.name != "nt":
            file.unlink(missing_ok=True)
        lock.release()


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path whose content becomes `path` when the block ends well.

    The block creates either a file or a folder at the temporary path. This path lies in the same
    folder as `path` (a rename is atomic only within one file system) and ends in the same
    suffix (so that `numpy.save` and the like neither add one nor guess the format wrongly).
    On success it is flushed to the disk and renamed onto `path`; on any exception,
    `KeyboardInterrupt` among them, the temporary is removed and `path` stays as it was.

    A file replaces an older file in one step. A folder cannot replace another in one step on
    every system: the older one is moved aside first. It is moved back if the rename fails, or by
    the next `sole_writer` if the process is killed between the two steps. Parent folders that do
    not exist are created; a symbolic link is followed, not replaced. Remote files and folders
    (gs:// and the like) are written locally and then uploaded.
    """
    if remote := remote_path(path):
        with tempfile.TemporaryDirectory() as folder:
            local = joined(Path(folder), PurePosixPath(remote).name, where=remote)
            yield local
            upload(local, remote)
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise FileExistsError(f"{target}: expected a file or folder, found a device or a pipe.")
    name = f".{target.stem}{_MARK}{secrets.token_hex(6)}{target.suffix}"
    temporary, moved_aside = target.with_name(name), target.with_name(name + _OLDER)
    try:
        yield temporary
        for file in (temporary, *temporary.rglob("*")):
            if file.is_file():
                with file.open("rb+" if os.name == "nt" else "rb") as stream:
                    os.fsync(stream.fileno())
        if temporary.is_dir() and target.is_dir():
            target.rename(moved_aside)
        temporary.replace(target)
    except BaseException:
        if moved_aside.exists() and not target.exists():
            moved_aside.rename(target)
        _remove(temporary)
        raise
    _remove(moved_aside)


def _remove_leftovers(folder: Path, name: str | None) -> None:
    """Removes what killed writers left, of one file or all; moves a folder back."""
    for path in [*(folder.iterdir() if name else folder.rglob(f".*{_MARK}*"))]:
        match = _TEMPORARY.fullmatch(path.name)
        if match is None or name not in (None, match[1] + match[2]):
            continue
        target = path.with_name(match[1] + match[2])
        if match[3] and not target.exists():
            path.rename(target)
        else:
            _remove(path)


def _remove(path: Path) -> None:
    """Removes a file, or a folder with its content; it is no error if nothing is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(dict(value), indent=2) + "\n", encoding="utf-8")


def file_sha256(path: Path) -> str:
    """sha256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remote_path(path: str | os.PathLike[str]) -> str | None:
    """Returns the path as TensorFlow writes it, `gs://bucket/name`; None for a local path."""
    match = _REMOTE.fullmatch(os.fspath(path))
    return None if match is None or match[1] in _NO_FILES else as_written(path)


def as_written(path: str | os.PathLike[str]) -> str:
    """Returns the path as users write it: a `Path` of gs://bucket/name has lost a slash."""
    match = _REMOTE.fullmatch(os.fspath(path))
    return f"{match[1]}://{match[2].rstrip('/')}" if match else os.fspath(path)


def check_inner(path: str | os.PathLike[str]) -> None:
    """Checks that a remote path is below a bucket, not the bucket itself."""
    remote = remote_path(path)
    if remote and "/" not in remote.partition("://")[2]:
        raise ValueError(f"{remote}: expected a path in the bucket, such as {remote}/NAME.")


def is_inner(name: str) -> bool:
    r"""Whether a path with "/" leads to something below the folder that it is joined to.

    It must do so on every system: `C:x` and `..\x` are names on Linux, and lead out of the folder
    on Windows. The empty name is the folder itself.
    """
    leads_out = name.startswith("/") or ".." in name.split("/") or PureWindowsPath(name).drive
    return not (leads_out or "\\" in name or "\0" in name)


def check_inner_names(names: list[str], *, where: str) -> list[str]:
    """Checks that all names are paths below a folder (`where`, for messages), and returns them."""
    for name in names:
        if not is_inner(name):
            raise ValueError(f"{where}: expected names inside this folder, received {name!r}.")
    return names


def joined(folder: Path, name: str, *, where: str) -> Path:
    """Returns the path of a name in a local folder; a name or link may not lead out of it."""
    path = folder / check_inner_names([name], where=where)[0]
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise ValueError(f"{where}: expected {name!r} inside {folder}, found a link to outside.")
    return path


def cache_folder(part: str) -> Path:
    """Returns the folder of a part of the cache; it is created, for this user alone."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base, "use_st5", part)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "nt":
        return folder
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder}: expected a folder of this user. Set XDG_CACHE_HOME.")
    if stat.S_IMODE(folder.stat().st_mode) != 0o700:  # A read-only file system would refuse it.
        folder.chmod(0o700)
    return folder


@contextlib.contextmanager
def open_local(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a local copy of a remote file or folder for a block; a local path as it is.

    Use it for files that are read once: `cached_path` keeps its copies. If the remote path does
    not exist, the local path does not exist either.
    """
    remote = remote_path(path)
    if remote is None:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        local = joined(Path(folder), PurePosixPath(remote).name, where=remote)
        download(remote, local)
        yield local


def cached_path(path: str | os.PathLike[str]) -> Path:
    """Returns a local copy of a remote file or folder; a local path as it is.

    Copies are kept in the user's cache folder. A copy is used again if the remote names, sizes and
    times have not changed.
    """
    remote = remote_path(path)
    if remote is None:
        return Path(path)
    listing = _listing(remote)
    if not listing:
        raise FileNotFoundError(f"{remote}: expected a file or a folder with files.")
    digest = hashlib.sha256(repr((remote, *sorted(listing.items()))).encode()).hexdigest()[:16]
    folder = cache_folder(REMOTE)
    copy = joined(folder / digest, PurePosixPath(remote).name, where=remote)
    if not copy.exists():
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            download(remote, Path(temporary, digest, copy.name))
            with contextlib.suppress(OSError):  # Another process was faster.
                Path(temporary, digest).rename(folder / digest)
    return copy


def download(remote: str, local: Path) -> None:
    """Copies a remote file or folder to a local path that does not exist.

    A name there that leads out of the folder is an error, and nothing is copied then.
    """
    listing = _listing(remote)
    with _store_errors(remote) as files:
        for name in listing:
            target = joined(local, name, where=remote)
            target.parent.mkdir(parents=True, exist_ok=True)
            files.copy(f"{remote}/{name}" if name else remote, os.fspath(target), overwrite=True)


def upload(local: Path, path: str) -> None:
    """Uploads a local file or folder to the remote `path`.

    A file is replaced in one step. A folder is replaced file by file: those that the older
    `use_st5.json` lists are removed, `saved_model.pb` first; then the new ones are uploaded,
    `use_st5.json` first and `saved_model.pb` last. If this is interrupted, there is no model, and
    `use_st5.json` says which files may be replaced. All other files stay.
    """
    is_file = local.is_file()
    names = [each.relative_to(local).as_posix() for each in local.rglob("*") if each.is_file()]
    if not is_file and not names:
        raise FileNotFoundError(f"Expected a file or folder to upload to {path}.")
    check_inner_names(names, where=path)
    with _store_errors(path) as files:
        if files.exists(path) and files.isdir(path) == is_file:
            raise FileExistsError(f"{path}: expected a {'file' if is_file else 'folder'} or none.")
        if is_file:
            _replace(files, local, path)
            return
        present, replaceable = {*_listing(path)}, {*names}
        if FILE_LIST in names:
            with open_local(f"{path}/{FILE_LIST}") as list_file:
                is_there = list_file.is_file()
                listed = [*json.loads(list_file.read_bytes())["files"]] if is_there else []
            replaceable = {FILE_LIST, *check_inner_names(listed, where=path)}
            if foreign := sorted(present.intersection(names) - replaceable):
                raise FileExistsError(f"{path}: expected none of your files, found {foreign}.")
            present.discard(FILE_LIST)
        for name in sorted(present & replaceable, key=_order, reverse=True):
            files.remove(f"{path}/{name}")
        if FILE_LIST in names:
            _replace(files, local / FILE_LIST, f"{path}/{FILE_LIST}")
        for name in sorted({*names} - {FILE_LIST}, key=_order):
            files.makedirs(f"{path}/{name}".rpartition("/")[0])
            files.copy(os.fspath(local / name), f"{path}/{name}", overwrite=True)


def staging_path(path: str) -> Path:
    """The path in the cache where a file grows before it is uploaded to `path`."""
    digest = hashlib.sha256(path.encode()).hexdigest()[:16]
    return cache_folder(REMOTE) / f"{UPLOAD}{digest}" / PurePosixPath(path).name


def remove(path: str) -> None:
    """Removes a remote file or folder, the JSON files that describe it first."""
    names = sorted(_listing(path), key=_order, reverse=True)
    with _store_errors(path) as files:
        for name in names:
            files.remove(f"{path}/{name}" if name else path)
        if files.isdir(path):
            files.rmtree(path)


def names_in(path: str | os.PathLike[str]) -> list[str]:
    """The names in a local or remote folder; none if there is no such folder."""
    remote = remote_path(path)
    if remote is None:
        return [each.name for each in Path(path).iterdir()] if Path(path).is_dir() else []
    with _store_errors(remote) as files:
        names = [name.rstrip("/") for name in files.listdir(remote)] if files.isdir(remote) else []
    return [name for name in check_inner_names(names, where=remote) if not name.endswith(_NEW)]


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a local or remote file or folder exists."""
    remote = remote_path(path)
    if remote is None:
        return Path(path).exists()
    with _store_errors(remote) as files:
        return bool(files.exists(remote))


def _listing(remote: str) -> dict[str, tuple[int, int]]:
    """Name of a file below the path ("" if the path is a file) → its size and time."""
    with _store_errors(remote) as files:
        if not files.exists(remote):
            return {}
        paths = [remote]
        if files.isdir(remote):
            walked = files.walk(remote)
            paths = [f"{place.rstrip('/')}/{name}" for place, _, names in walked for name in names]
        names = [path.removeprefix(remote).removeprefix("/") for path in paths]
        check_inner_names(names, where=remote)
        states = {name: files.stat(path) for name, path in zip(names, paths, strict=True)}
    return {name: (state.length, state.mtime_nsec) for name, state in states.items()}


def _order(name: str) -> tuple[bool, bool, int, str]:
    """Puts a model's `saved_model.pb` last, and before it the JSON files, the outermost last."""
    return name == "saved_model.pb", name.endswith(".json"), -name.count("/"), name


def _replace(files: ModuleType, local: Path, target: str) -> None:
    files.makedirs(target.rpartition("/")[0])
    if files.exists(f"{target}{_NEW}"):  # TensorFlow's file system in memory would append.
        files.remove(f"{target}{_NEW}")
    files.copy(os.fspath(local), f"{target}{_NEW}")
    files.rename(f"{target}{_NEW}", target, overwrite=True)


@contextlib.contextmanager
def _store_errors(remote: str) -> Iterator[ModuleType]:
    """Gives `tf.io.gfile`, and turns its errors into Python's own, with the path."""
    tensorflow = require("tensorflow", "tensorflow")
    files: ModuleType = tensorflow.io.gfile
    scheme, schemes = remote.partition("://")[0], files.get_registered_schemes()
    if scheme not in schemes:
        known = ", ".join(f"{each}://" for each in sorted(schemes) if each)
        raise ValueError(f"{remote}: expected a scheme that TensorFlow knows, {known}.")
    try:
        yield files
    except tensorflow.errors.OpError as error:
        kind = FileNotFoundError if isinstance(error, tensorflow.errors.NotFoundError) else OSError
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise kind(f"{remote}: {said}. Check the name, the network and your rights.") from error
