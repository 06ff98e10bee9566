"""Files and folders: written completely or not at all, by one process at a time; their sha256."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import re
import secrets
import shutil
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from use_st5.io.remote_files import check_inner, remote_path, upload_on_exit
from use_st5.io.remote_files import file_sha256 as file_sha256

if TYPE_CHECKING:
    import filelock

# Resolved path that only this process may write → the number of blocks that rely on this.
_held: Counter[Path] = Counter()
_held_guard = threading.Lock()
# The temporaries that blocks of this process are writing now.
_growing: set[Path] = set()
# The lock file in a folder, and the end of the name of one beside a file. Other programs write
# `.lock` and `.NAME.lock`, which must not be emptied and removed.
LOCK_FILE = ".use_st5.lock"
# A lock that is being given back can look taken for an instant.
_PATIENCE = 0.5
_FULL = (errno.ENOSPC, errno.EDQUOT)
# The messages of TensorFlow and NumPy for a full disk.
_SAYS_FULL = re.compile("|".join([*map(os.strerror, _FULL), r"^\d+ requested and \d+ written$"]))
# The name of an older folder ends in this while the folder is being replaced.
_OLDER = ".older"


@contextlib.contextmanager
def sole_writer(
    path: str | os.PathLike[str], *, inside: bool = False, remote: bool = False
) -> Iterator[None]:
    """Makes this process the only one that writes the file or folder `path`, for a block.

    Another process is refused at once. Blocks of one process may be nested: a command takes the
    lock for its whole run, and the library's writer that it calls takes it again. Leftovers of
    killed writers of `path` are removed. In the block, `atomic_path` also removes those of each
    file or folder below `path` that it writes anew. No other process can be writing there.

    The operating system keeps the lock, and drops it when the process ends in any way. A hidden
    lock file says who holds the lock. If the process was killed, this file stays, and hinders
    nobody.

    Args:
        path: A file or folder, which need not exist.
        inside: Whether the lock file lies in the folder `path`, which is created, instead of next
            to it. This is for a folder that is written piece by piece and never replaced as a
            whole. Then the folder above it need not be writable.
        remote: Whether a folder that is written piece by piece may be remote, because everything
            in it is written by `atomic_path` and the like.

    Remote files (gs:// and others) have no lock: only one process may write them.

    Raises:
        BlockingIOError: Another process is writing it.
        OSError: The folder cannot be made or written to.
        ValueError: A remote folder would be written file by file, or is a whole bucket.
    """
    if url := remote_path(path):
        if inside and not remote:
            raise ValueError(
                f"{url}: expected a local folder, because its files are written one by one. "
                "Choose a local folder."
            )
        check_inner(url)
        yield
        return
    target = Path(os.path.realpath(path))
    file = target / LOCK_FILE if inside else _lock_beside(target)
    with _held_guard:
        lock = _lock(target, file)
        _held[target] += 1
    try:
        if not inside:
            _remove_leftovers(target)
        yield
    finally:
        with _held_guard:
            _held[target] -= 1
            if not _held[target]:
                del _held[target]
                _remove_lock_file(lock)
            lock.release()


def remove_stale_lock(path: str | os.PathLike[str]) -> None:
    """Removes the lock file of a writer that was killed when the file `path` was complete.

    It is for files that are written once and only read afterwards, so that no later writer would
    remove the lock file. The lock file stays if a process is writing the file, or if this user
    may not write the folder.
    """
    target = Path(os.path.realpath(path))
    if _lock_beside(target).exists():
        with contextlib.suppress(OSError), sole_writer(target):
            pass


@contextlib.contextmanager
def atomic_path(
    path: str | os.PathLike[str], *, older: Collection[str] | None = None
) -> Iterator[Path]:
    """Gives a temporary path whose content becomes `path` when the block ends well.

    The block creates either a file or a folder at the temporary path. This path lies in the same
    folder as `path` (a rename is atomic only within one file system) and ends in the same
    suffix (so that `numpy.save` and the like neither add one nor guess the format wrongly).
    On success everything is flushed to the disk and renamed onto `path`; on any exception,
    `KeyboardInterrupt` among them, the temporary is removed and `path` stays as it was.

    A file replaces an older file in one step. A folder cannot replace another in one step on
    every system: the older one is moved aside first. It is moved back if the rename fails, or by
    the next `sole_writer` if the process is killed between the two steps. Parent folders that do
    not exist are created; a symbolic link is followed, not replaced. Remote files and folders
    (gs:// and the like) are written locally and then uploaded (see `_remote_files`).

    Args:
        path: where the finished file or folder is to stand.
        older: for a remote folder, the names of the files there that are replaced, as for
            `_remote_files.upload`. A local folder is always replaced as a whole.

    Yields:
        The temporary path; nothing exists there yet.

    Raises:
        FileNotFoundError: the block ended without creating anything.
        FileExistsError: a folder would replace a file, or a file a folder, or either a device.
        OSError: With the number ENOSPC and the name `path`, if the disk is full.
    """
    if remote := remote_path(path):
        with upload_on_exit(remote, older=older) as temporary:
            yield temporary
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise FileExistsError(
            f"Expected {target} to be a file, a folder or not to exist, found a device or a pipe, "
            "which would be replaced. Choose another path."
        )
    if any(folder in _held for folder in (target, *target.parents)):
        _remove_leftovers(target)
    temporary = _sibling(target)
    _growing.add(temporary)
    try:
        with space_for(target):
            yield temporary
            _check_kinds(temporary, target)
            _flush(temporary)
            if target.is_dir():
                _replace_folder(temporary, target)
            else:
                temporary.replace(target)
    except BaseException:
        _remove(temporary)
        raise
    finally:
        _growing.discard(temporary)
    _flush_entry(target.parent)


@contextlib.contextmanager
def space_for(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns every library's way to say that the disk is full into an OSError that names `path`.

    Raises:
        OSError: With the number ENOSPC, if the block fails because the disk is full.
    """
    try:
        yield
    except Exception as error:
        if getattr(error, "errno", None) in _FULL or _SAYS_FULL.search(str(error)):
            full = errno.ENOSPC
            raise OSError(full, os.strerror(full), os.path.realpath(path)) from error
        raise


def _lock_beside(target: Path) -> Path:
    return target.with_name(f".{target.name}{LOCK_FILE}")


def _lock(target: Path, file: Path) -> filelock.BaseFileLock:
    """Takes the lock of `target`, or takes it once more."""
    import filelock  # Only those who write need it.

    file.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(file, thread_local=False, is_singleton=True)
    try:
        lock.acquire(timeout=_PATIENCE)
    except filelock.Timeout:
        raise BlockingIOError(
            f"{target} is being written by {_holder(file)}: wait until it has ended, or choose "
            "another path to write to."
        ) from None
    if isinstance(lock, filelock.UnixFileLock):  # Elsewhere the lock keeps others from reading it.
        with contextlib.suppress(OSError):  # On a full disk the lock holds without this text.
            file.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
    return lock


def _holder(lock_file: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return lock_file.read_text(encoding="utf-8") or "another process"
    return "another process"


def _remove_lock_file(lock: filelock.BaseFileLock) -> None:
    """Removes the file of a lock that is still held, if the lock does not do it itself.

    Nobody can end up with a lock on the removed file: when filelock has taken a lock, it checks
    whether the file still has its name.
    """
    import filelock

    if isinstance(lock, filelock.UnixFileLock):
        Path(lock.lock_file).unlink(missing_ok=True)


def _remove_leftovers(target: Path) -> None:
    """Removes leftovers of killed writers of `target`; moves back a folder that was moved aside."""
    name = re.compile(
        rf"\.{re.escape(target.stem)}\.[0-9a-f]{{12}}{re.escape(target.suffix)}({_OLDER})?"
    )
    for path in target.parent.iterdir():
        match = name.fullmatch(path.name)
        if match is None or path in _growing:
            continue
        if match[1] and not target.exists():
            path.rename(target)
        else:
            _remove(path)


def _sibling(target: Path) -> Path:
    """Returns an unused hidden name beside `target` with the same suffix."""
    return target.with_name(f".{target.stem}.{secrets.token_hex(6)}{target.suffix}")


def _check_kinds(temporary: Path, target: Path) -> None:
    """Refuses an empty result and the exchange of a file for a folder or the reverse."""
    if not temporary.exists():
        raise FileNotFoundError(
            f"Expected a file or folder at the temporary path {temporary} for {target}, found "
            "nothing. Write to the path that atomic_path gives."
        )
    if target.exists() and target.is_dir() != temporary.is_dir():
        old, new = ("folder", "file") if target.is_dir() else ("file", "folder")
        raise FileExistsError(
            f"Expected {target} to be a {new} or not to exist, found a {old}. "
            "Choose another path or remove it first."
        )


def _replace_folder(temporary: Path, target: Path) -> None:
    """Puts the folder `temporary` in the place of the folder `target`."""
    sibling = _sibling(target)
    older = sibling.with_name(sibling.name + _OLDER)
    target.rename(older)
    try:
        temporary.rename(target)
    except BaseException:
        older.rename(target)
        raise
    _remove(older)


def _remove(path: Path) -> None:
    """Removes a file, or a folder with its content; it is no error if nothing is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Flushes a file, or every file and folder below a folder, to the disk."""
    if path.is_dir():
        for folder, _, names in os.walk(path):
            for name in names:
                _flush_entry(Path(folder, name))
            _flush_entry(Path(folder))
    else:
        _flush_entry(path)


def _flush_entry(path: Path) -> None:
    """Flushes one file or one folder's list of names."""
    windows = os.name == "nt"
    if windows and path.is_dir():  # Windows has no handle to a folder that could be flushed.
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(dict(value), indent=2) + "\n", encoding="utf-8")
