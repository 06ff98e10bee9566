"""Remote files: gs://, s3:// and every other file system that TensorFlow knows (`tf.io.gfile`).

Many libraries read and write local files only. So a remote file is downloaded before it is read,
and what was written is uploaded when it is complete. A folder is uploaded file by file: its JSON
files, which say that it is complete, come last.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import ModuleType

import msgspec

from use_st5._imports import require

# `Path` makes one slash of two. A scheme has two letters or more: Windows' drives have one.
_REMOTE = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])(.*)", re.DOTALL)
# Schemes of addresses that TensorFlow does not open as files.
_NO_FILES = ("http", "https", "hf", "kaggle")
# While a model is being uploaded, this file in its folder names the files of the old and the new
# model, so that the next writer may replace what a killed one left.
_UPLOADING = ".use_st5.uploading.json"
# The file by which programs that do not know use_st5 recognize a model.
_SAVED_MODEL = "saved_model.pb"
# The part of the cache with copies, and how the names of folders there begin whose files are not
# uploaded yet.
REMOTE, UPLOAD = "remote", "to-"


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
    if remote and not remote.partition("://")[2].partition("/")[2]:
        raise ValueError(f"{remote}: expected a path in the bucket, such as {remote}/NAME.")


def is_inner(name: str) -> bool:
    r"""Whether a path with "/" leads to something below the folder that it is joined to.

    It must do so on every system: `C:x` and `..\x` are names on Linux, and lead out of the folder
    on Windows. The empty name is the folder itself.
    """
    return not (
        name.startswith("/")
        or ".." in name.split("/")
        or "\\" in name
        or "\0" in name
        or PureWindowsPath(name).drive
    )


def check_inner_names(names: list[str], *, where: str) -> list[str]:
    """Checks that all names are paths below a folder (`where`, for messages), and returns them.

    Raises:
        ValueError: A name is absolute, contains `..`, a backslash or a drive.
    """
    for name in names:
        if not is_inner(name):
            raise ValueError(
                f"{where}: expected files inside this folder, received the name {name!r}, which "
                "points outside. Nothing was copied. Remove this file, and find out who wrote it."
            )
    return names


def joined(folder: Path, name: str, *, where: str) -> Path:
    """Returns the path of a name in a local folder; the folder itself for the empty name.

    Raises:
        ValueError: As `check_inner_names`, or a link in the folder leads out of it.
    """
    check_inner_names([name], where=where)
    path = folder / name
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise ValueError(
            f"{where}: expected {name!r} inside {folder}, found a link to a place outside."
        )
    return path


def cache_folder(part: str) -> Path:
    """Returns the folder of a part of the cache; it is created, for this user alone."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base, "use_st5", part)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "nt":
        return folder
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(
            f"{folder}: expected a cache folder of this user, found one of another. Set "
            "XDG_CACHE_HOME to a folder of your own."
        )
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

    Raises:
        FileNotFoundError: The remote path does not exist, or the folder has no files.
    """
    remote = remote_path(path)
    if remote is None:
        return Path(path)
    listing = _listing(remote)
    if not listing:
        raise FileNotFoundError(f"{remote}: expected a file or a folder with files, found none.")
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

    Raises:
        ValueError: A name there leads out of the folder: nothing is copied then.
        OSError: It was changed while it was copied.
    """
    listing = _listing(remote)
    with _store_errors(remote) as files:
        for name in listing:
            target = joined(local, name, where=remote)
            target.parent.mkdir(parents=True, exist_ok=True)
            files.copy(f"{remote}/{name}" if name else remote, os.fspath(target), overwrite=True)
    if _listing(remote) != listing:
        raise OSError(
            f"{remote}: expected files that do not change, found that another process changed "
            "them during the copy. Run again when it has ended."
        )


def upload(local: Path, path: str, *, older: Collection[str] | None = None) -> None:
    """Uploads a local file or folder to the remote `path`.

    In an older folder, the files of `older` are removed first, and all others stay. If the upload
    is interrupted, the older file stays; a folder then has no complete model.

    Args:
        local: The file or folder.
        path: The remote path.
        older: For a folder, the names of the files there that are ours; None: only files with the
            name of a new file are ours.

    Raises:
        FileExistsError: A file would replace a folder, a folder a file, or a new file one of the
            same name that is not among `older`.
        OSError: The upload failed.
    """
    is_file = local.is_file()
    names = [each.relative_to(local).as_posix() for each in local.rglob("*") if each.is_file()]
    check_inner_names(names, where=path)
    with _store_errors(path) as files:
        if files.exists(path) and files.isdir(path) == is_file:
            old, new = ("folder", "file") if is_file else ("file", "folder")
            raise FileExistsError(
                f"Expected {path} to be a {new} or not to exist, found a {old}. Choose another "
                "path or remove it first."
            )
        if is_file:
            _copy_to(files, local, f"{path}.use_st5.new")
            files.rename(f"{path}.use_st5.new", path, overwrite=True)
            return
        present_names = {*_listing(path)}
        replaceable_names = {*names} if older is None else {*older}
        if conflicts := sorted(present_names.intersection(names) - replaceable_names):
            raise FileExistsError(
                f"{path}: expected none of your files with the name of a new file, found "
                f"{', '.join(conflicts)}. Move them away, or choose another folder."
            )
        if older is not None:
            with tempfile.NamedTemporaryFile() as mark:
                Path(mark.name).write_text(json.dumps(sorted({*older, *names})), encoding="utf-8")
                _copy_to(files, Path(mark.name), f"{path}/{_UPLOADING}")
        for name in sorted(present_names & replaceable_names, key=_order, reverse=True):
            files.remove(f"{path}/{name}")
        for name in sorted(names, key=_order):
            _copy_to(files, local / name, f"{path}/{name}")
        if older is not None:
            files.remove(f"{path}/{_UPLOADING}")


def unfinished_upload(path: str) -> list[str]:
    """The names of the files that a killed `upload` of a model to the folder may have left."""
    with open_local(f"{path}/{_UPLOADING}") as local:
        content = local.read_bytes() if local.is_file() else b"[]"
    try:
        names = msgspec.json.decode(content, type=list[str])
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}/{_UPLOADING}: {error}. Remove this file.") from error
    return check_inner_names(names, where=path)


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
    return [name for name in check_inner_names(names, where=remote) if name != _UPLOADING]


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
    states.pop(_UPLOADING, None)
    return {name: (state.length, state.mtime_nsec) for name, state in states.items()}


def _order(name: str) -> tuple[bool, bool, int, str]:
    # If there are two JSON files, the outer one describes the whole folder.
    path = PurePosixPath(name)
    return path.suffix == ".json", name == _SAVED_MODEL, -len(path.parts), name


def _copy_to(files: ModuleType, local: Path, target: str) -> None:
    files.makedirs(target.rpartition("/")[0])
    if files.exists(target):  # TensorFlow's file system in memory would append.
        files.remove(target)
    files.copy(os.fspath(local), target)


@contextlib.contextmanager
def _store_errors(remote: str) -> Iterator[ModuleType]:
    """Gives `tf.io.gfile`, and turns its errors into Python's own, with the path.

    TensorFlow quotes the answer of the store, and names the file in its last line, or not at all.
    """
    tensorflow = require("tensorflow", "tensorflow")
    files: ModuleType = tensorflow.io.gfile
    scheme, schemes = remote.partition("://")[0], files.get_registered_schemes()
    if scheme not in schemes:
        raise ValueError(
            f"{remote}: expected a scheme that TensorFlow knows, "
            f"{', '.join(f'{each}://' for each in sorted(schemes) if each)}. For another scheme, "
            "import its package first, such as tensorflow-io for s3://."
        )
    try:
        yield files
    except tensorflow.errors.OpError as error:
        is_missing = isinstance(error, tensorflow.errors.NotFoundError)
        said = " ".join(str(error).split())[:200]
        raise (FileNotFoundError if is_missing else OSError)(
            f"{remote}: expected a remote path that can be read and written, TensorFlow says: "
            f"{type(error).__name__}: {said}. Check the name, the network and your permission."
        ) from error


def file_sha256(path: Path) -> str:
    """sha256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
