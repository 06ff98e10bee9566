"""Remote files: gs://, s3:// and every other file system that TensorFlow knows (`tf.io.gfile`).

Many libraries read and write local files only. So we download a remote file before they read it,
and upload what they wrote when it is complete.

An object store replaces one object in one step. It can neither rename a folder nor lock a file. We
therefore replace a folder in three steps:

1. Upload the new files into `FOLDER/.use_st5.new`. No reader looks there, so that a failure changes
   nothing.
2. Write `FOLDER/.use_st5.new/swap.json` with the names of the new files and of our older files.
   From now on we read the new files, at their old or new place (`_listing`).
3. Move the new files to their places within the store, `saved_model.pb` and the JSON files last.
   Before that, remove the older `saved_model.pb` and JSON files, so that no reader mixes the two.
   Then remove our older files that have no successor, and `swap.json` at the end.

So use_st5 reads either the old or the new folder at any time. TensorFlow itself does not know
`swap.json`: it finds the old model, no model during step 3, and then the new one. If a process is
killed in step 3, the next writer finishes it (`finish_swap`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import NamedTuple, ParamSpec, TypeVar

import msgspec

from use_st5._imports import require
from use_st5.io.cache import REMOTE, UPLOAD, cache_folder
from use_st5.io.inner_path import check_inner_names, joined

Kind = TypeVar("Kind")
Arguments = ParamSpec("Arguments")

# `Path` makes one slash of two. A scheme has two letters or more: Windows' drives have one.
_REMOTE = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])(.*)", re.DOTALL)
# Schemes of addresses that TensorFlow does not open as files.
_NO_FILES = ("http", "https", "hf", "kaggle")
_NEW, _SWAP, _GROWING = ".use_st5.new", "swap.json", "growing.json"
# The file by which programs that do not know use_st5 recognize a model.
_SAVED_MODEL = "saved_model.pb"
# A copy in the cache, and the record of its files.
_COPY, _COPIED = "copy", "copied.json"
_FORMAT = 1
# The largest size of a record in bytes: the names and hashes of a hundred thousand files.
_LIMIT = 2**26


def remote_path(path: str | os.PathLike[str]) -> str | None:
    """Returns the path as TensorFlow writes it, `gs://bucket/name`; None for a local path."""
    match = _REMOTE.fullmatch(os.fspath(path))
    return None if match is None or match[1] in _NO_FILES else as_written(path)


def as_written(path: str | os.PathLike[str]) -> str:
    """Returns the path as users write it: a `Path` of gs://bucket/name has lost a slash."""
    match = _REMOTE.fullmatch(os.fspath(path))
    return f"{match[1]}://{match[2].rstrip('/')}" if match else os.fspath(path)


def check_inner(path: str | os.PathLike[str]) -> None:
    """Checks that a remote path is below a bucket, not the bucket itself.

    Raises:
        ValueError: It is the bucket.
    """
    remote = remote_path(path)
    if remote and not remote.partition("://")[2].partition("/")[2]:
        raise ValueError(f"{remote}: expected a path in the bucket, such as {remote}/NAME.")


@contextlib.contextmanager
def open_local(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a local copy of a remote file or folder for a block; a local path as it is.

    Use it for files that are read once: `cached_path` keeps its copies. If the remote path does
    not exist, the local path does not exist either.

    Raises:
        ValueError: A name there leads out of the folder.
        OSError: It was changed while it was copied.
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
    times have not changed, and if its own files still have the sizes and hashes of the download.
    Otherwise it is made again.

    Raises:
        FileNotFoundError: The remote path does not exist, or the folder has no files.
        ValueError: A name there leads out of the folder.
        OSError: It was changed while it was copied, or the cache belongs to another user.
    """
    remote = remote_path(path)
    if remote is None:
        return Path(path)
    listing = _listing(remote)
    if not listing:
        raise FileNotFoundError(f"{remote}: expected a file or a folder with files, found none.")
    digest = hashlib.sha256(repr((remote, sorted(listing.items()))).encode()).hexdigest()[:16]
    folder, name = cache_folder(REMOTE) / digest, PurePosixPath(remote).name
    if not _is_intact(folder, name):
        with tempfile.TemporaryDirectory(dir=cache_folder(REMOTE)) as temporary:
            new_folder = Path(temporary, digest)
            (new_folder / _COPY).mkdir(parents=True)
            copies = download(remote, joined(new_folder / _COPY, name, where=remote))
            (new_folder / _COPIED).write_bytes(msgspec.json.encode(_Copies(copies)))
            _place(new_folder, folder, name)
    return folder / _COPY / name


def _place(whole: Path, place: Path, name: str) -> None:
    """Moves a complete copy to its place in the cache, where another process may have put one."""
    if place.exists():
        place.rename(whole.with_name("older"))
    try:
        whole.rename(place)
    except OSError:
        if not _is_intact(place, name):
            raise


def _names_its_path(function: Callable[Arguments, Kind]) -> Callable[Arguments, Kind]:
    """Turns TensorFlow's errors into Python's own, with the remote path among the arguments.

    TensorFlow quotes the answer of the store, and names the file in its last line, or not at all.
    """

    @functools.wraps(function)
    def named(*args: Arguments.args, **options: Arguments.kwargs) -> Kind:
        try:
            return function(*args, **options)
        except Exception as error:
            kinds = {each.__name__ for each in type(error).__mro__}
            if "OpError" not in kinds:
                raise
            paths = (each for each in args if isinstance(each, str | os.PathLike))
            path = next(filter(None, map(remote_path, paths)), "")
            kind = FileNotFoundError if "NotFoundError" in kinds else OSError
            said = " ".join(str(error).split())[:200]
            raise kind(
                f"{path}: expected a remote path that can be read and written, TensorFlow says: "
                f"{type(error).__name__}: {said}. Check the name, the network and your permission."
            ) from error

    return named


@_names_its_path
def download(remote: str, local: Path) -> dict[str, _Copied]:
    """Copies a remote file or folder to a local path that does not exist.

    Returns:
        Name below the path ("" if the path is a file) → size and hash of the copy.

    Raises:
        ValueError: A name there leads out of the folder: nothing is copied then.
        OSError: It was changed while it was copied.
    """
    files = _files_of_tensorflow(remote)
    missing = require("tensorflow", "tensorflow").errors.NotFoundError
    listing = _listing(remote)
    copies = {}
    with contextlib.suppress(missing):
        for name, file in listing.items():
            target = joined(local, name, where=remote)
            target.parent.mkdir(parents=True, exist_ok=True)
            copies[name] = _copy(files, file.path, os.fspath(target))
    sizes = {name: file.bytes for name, file in listing.items()}
    if {name: each.bytes for name, each in copies.items()} != sizes or _listing(remote) != listing:
        raise OSError(
            f"{remote}: expected files that do not change, found that another process changed "
            "them during the copy. Run again when it has ended."
        )
    return copies


@contextlib.contextmanager
def upload_on_exit(path: str, *, older: Collection[str] | None = None) -> Iterator[Path]:
    """Gives a temporary local path; what the block writes there is uploaded to `path`.

    Raises:
        FileNotFoundError: The block ended without creating anything.
        FileExistsError: As `upload`.
    """
    with tempfile.TemporaryDirectory() as folder:
        local = joined(Path(folder), PurePosixPath(path).name, where=path)
        yield local
        if not local.exists():
            raise FileNotFoundError(f"Expected a file or folder to upload to {path}, found none.")
        upload(local, path, older=older)


@_names_its_path
def upload(local: Path, path: str, *, older: Collection[str] | None = None) -> None:
    """Uploads a local file or folder to the remote `path`: all of it, or nothing.

    In an older folder, files of the same names are replaced, those of `older` are removed, and all
    others stay. If the upload fails, the older file or folder is unchanged.

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
    files = _files_of_tensorflow(path)
    is_file = local.is_file()
    if files.exists(path) and files.isdir(path) == is_file:
        old, new = ("folder", "file") if is_file else ("file", "folder")
        raise FileExistsError(
            f"Expected {path} to be a {new} or not to exist, found a {old}. Choose another path or "
            "remove it first."
        )
    if is_file:
        parent, _, file_name = path.rpartition("/")
        _upload(files, local, f"{parent}/{_NEW}/{file_name}")
        files.rename(f"{parent}/{_NEW}/{file_name}", path, overwrite=True)
        _remove_empty(files, f"{parent}/{_NEW}")
        return
    finish_swap(path)
    names = [each.relative_to(local).as_posix() for each in local.rglob("*") if each.is_file()]
    check_inner_names(names, where=path)
    other_names = {*_walked(files, path)}.difference(names if older is None else older)
    if conflicts := sorted(other_names.intersection(names)):
        raise FileExistsError(
            f"{path}: expected none of your files with the name of a new file, found "
            f"{', '.join(conflicts)}. Move them away, or choose another folder."
        )
    new_names = sorted(names, key=_move_order)
    removed_names = sorted({*(older or ())}.difference(names))
    try:
        for name in new_names:
            _upload(files, local / name, f"{path}/{_NEW}/{name}")
        _write_swap(files, path, new_names, removed_names)
    except BaseException:
        with contextlib.suppress(Exception):  # The reason of the failure is what counts.
            finish_swap(path)
        raise
    _swap(files, path, new_names, removed_names)


@_names_its_path
def finish_swap(path: str) -> None:
    """Finishes or undoes the replacement of the remote folder `path` by a killed writer."""
    files = _files_of_tensorflow(path)
    if not files.exists(f"{path}/{_NEW}"):
        return
    if files.exists(f"{path}/{_NEW}/{_SWAP}"):
        _swap(files, path, *_read_swap(path))
        return
    remove(f"{path}/{_NEW}")
    _remove_empty(files, path)


def staging_path(path: str) -> Path:
    """The path in the cache where a file grows before it is uploaded to `path`."""
    digest = hashlib.sha256(path.encode()).hexdigest()[:16]
    return cache_folder(REMOTE) / f"{UPLOAD}{digest}" / PurePosixPath(path).name


@_names_its_path
def remove(path: str) -> None:
    """Removes a remote file or folder, the JSON files that describe it first.

    Raises:
        ValueError: A name in it leads out of the folder.
    """
    files = _files_of_tensorflow(path)
    names = _walked(files, path)
    for name in sorted(names, key=_move_order, reverse=True):
        files.remove(names[name].path)
    _remove_empty(files, path)


@_names_its_path
def names_in(path: str | os.PathLike[str]) -> list[str]:
    """The names in a local or remote folder; none if there is no such folder.

    Raises:
        ValueError: A remote name leads out of the folder.
    """
    remote = remote_path(path)
    if remote is None:
        return [each.name for each in Path(path).iterdir()] if Path(path).is_dir() else []
    files = _files_of_tensorflow(remote)
    names = [name.rstrip("/") for name in files.listdir(remote)] if files.isdir(remote) else []
    return [name for name in check_inner_names(names, where=remote) if name != _NEW]


@_names_its_path
def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a local or remote file or folder exists."""
    remote = remote_path(path)
    if remote is None:
        return Path(path).exists()
    return bool(_files_of_tensorflow(remote).exists(remote))


class _File(NamedTuple):
    """A remote file."""

    path: str
    bytes: int
    time: int


class _Copied(msgspec.Struct, frozen=True):
    """The size and the hash of a copied file."""

    bytes: int
    sha256: str


class _Copies(msgspec.Struct):
    """The record of a copy in the cache."""

    files: dict[str, _Copied]
    format: int = _FORMAT


class _Swap(msgspec.Struct):
    """The new files of a folder, in the order of their moves, and the older ones to remove."""

    files: list[str]
    older: list[str]
    format: int = _FORMAT


def _read(path: str | Path, kind: type[Kind]) -> Kind:
    """Reads a record, local or remote."""
    with open_local(path) as local:
        content = local.read_bytes() if local.stat().st_size <= _LIMIT else b""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: {error}. Remove this file, and write the folder again."
        ) from error


def _read_swap(path: str) -> tuple[list[str], list[str]]:
    """The names in a `_Swap`, which must not lead out of the folder."""
    swap = _read(f"{path}/{_NEW}/{_SWAP}", _Swap)
    return check_inner_names(swap.files, where=path), check_inner_names(swap.older, where=path)


def _write_swap(files: ModuleType, path: str, new: list[str], older: list[str]) -> None:
    """Writes the record: the new files count from now on."""
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, _SWAP)
        local.write_bytes(msgspec.json.encode(_Swap(new, older)))
        # A store may show a file while it grows. A move is one step.
        _upload(files, local, f"{path}/{_NEW}/{_GROWING}")
    files.rename(f"{path}/{_NEW}/{_GROWING}", f"{path}/{_NEW}/{_SWAP}")


def _swap(files: ModuleType, path: str, new: list[str], older: list[str]) -> None:
    """Step 3: moves the new files to their places, and removes our older ones."""
    all_files = _walked(files, path)
    pending_names = [name for name in new if f"{_NEW}/{name}" in all_files]
    for name in reversed(pending_names):
        if name in all_files and (name == _SAVED_MODEL or PurePosixPath(name).suffix == ".json"):
            files.remove(f"{path}/{name}")
    for name in pending_names:
        files.makedirs(f"{path}/{name}".rpartition("/")[0])
        files.rename(f"{path}/{_NEW}/{name}", f"{path}/{name}", overwrite=True)
    for name in older:
        if name in all_files:
            files.remove(f"{path}/{name}")
    files.remove(f"{path}/{_NEW}/{_SWAP}")
    remove(f"{path}/{_NEW}")


def _is_intact(place: Path, name: str) -> bool:
    """Whether a copy in the cache has the files, sizes and hashes that were copied."""
    copy = place / _COPY / name
    with contextlib.suppress(OSError, ValueError, LookupError):
        files = _read(place / _COPIED, _Copies).files
        paths = [copy] if "" in files else [each for each in copy.rglob("*") if not each.is_dir()]
        copies = {"" if path == copy else path.relative_to(copy).as_posix(): path for path in paths}
        return files == {
            each: _Copied(path.stat().st_size, file_sha256(path))
            for each, path in copies.items()
            if not path.is_symlink() and path.stat().st_size == files[each].bytes
        }
    return False


def file_sha256(path: Path) -> str:
    """sha256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _move_order(name: str) -> tuple[bool, bool, int, str]:
    # If there are two JSON files, the outer one describes the whole folder.
    path = PurePosixPath(name)
    return path.suffix == ".json", name == _SAVED_MODEL, -len(path.parts), name


@_names_its_path
def _listing(remote: str) -> dict[str, _File]:
    """Returns name below the path ("" if the path is a file) → the file to read.

    While the folder is being replaced, these are the new files, at their old or new place.

    Raises:
        ValueError: A name leads out of the folder.
        FileNotFoundError: A new file is gone.
    """
    files = _files_of_tensorflow(remote)
    all_files = _walked(files, remote)
    plain = {name: file for name, file in all_files.items() if not name.startswith(f"{_NEW}/")}
    if f"{_NEW}/{_SWAP}" not in all_files:
        return plain
    new_names, older_names = _read_swap(remote)
    try:
        new = {name: all_files.get(f"{_NEW}/{name}") or all_files[name] for name in new_names}
    except KeyError as error:
        raise FileNotFoundError(
            f"{remote}: expected the new file {error}, found none. Write the folder again."
        ) from error
    replaced_names = {*new_names, *older_names}
    return {name: file for name, file in plain.items() if name not in replaced_names} | new


def _walked(files: ModuleType, remote: str) -> dict[str, _File]:
    """Returns every file by its name below the path; "" if the path is a file.

    Raises:
        ValueError: A name leads out of the folder.
    """
    if not files.exists(remote):
        return {}
    if not files.isdir(remote):
        return {"": _signed(files, remote)}
    paths = [
        f"{folder.rstrip('/')}/{name}" for folder, _, names in files.walk(remote) for name in names
    ]
    names = check_inner_names([path.removeprefix(f"{remote}/") for path in paths], where=remote)
    return {name: _signed(files, path) for name, path in zip(names, paths, strict=True)}


def _signed(files: ModuleType, path: str) -> _File:
    facts = files.stat(path)
    return _File(path, facts.length, facts.mtime_nsec)


def _upload(files: ModuleType, local: Path, target: str) -> None:
    """Copies a local file to a remote path; an unfinished file there is removed.

    Raises:
        OSError: Not all of it arrived.
    """
    files.makedirs(target.rpartition("/")[0])
    if files.exists(target):  # TensorFlow's file system in memory would append.
        files.remove(target)
    sent = _copy(files, os.fspath(local), target).bytes
    if (arrived := files.stat(target).length) != sent:
        raise OSError(
            f"{target}: expected {sent:,} bytes after the upload, found {arrived:,}. Run again."
        )


def _remove_empty(files: ModuleType, folder: str) -> None:
    """Removes a folder without files, if the file system keeps such folders."""
    if files.isdir(folder) and not any(names for _, _, names in files.walk(folder)):
        files.rmtree(folder)


def _copy(files: ModuleType, source: str, target: str) -> _Copied:
    # `gfile.copy` refuses some pairs of file systems.
    digest, size = hashlib.sha256(), 0
    with files.GFile(source, "rb") as reader, files.GFile(target, "wb") as writer:
        while block := reader.read(2**24):
            writer.write(block)
            digest.update(block)
            size += len(block)
    return _Copied(size, digest.hexdigest())


def _files_of_tensorflow(remote: str) -> ModuleType:
    files: ModuleType = require("tensorflow", "tensorflow").io.gfile
    scheme, schemes = remote.partition("://")[0], files.get_registered_schemes()
    if scheme not in schemes:
        raise ValueError(
            f"{remote}: expected a scheme that TensorFlow knows, "
            f"{', '.join(f'{each}://' for each in sorted(schemes) if each)}. For another scheme, "
            "import its package first, such as tensorflow-io for s3://."
        )
    return files
