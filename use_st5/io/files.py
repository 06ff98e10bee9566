"""Files and folders: written completely or not at all, by one process at a time; their sha256."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import platform
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from use_st5.io.remote_files import check_inner, joined, remote_path, upload
from use_st5.io.remote_files import file_sha256 as file_sha256

# Resolved path that only this process may write → the number of blocks that rely on this.
_held: Counter[Path] = Counter()
# The lock file in a folder, and the end of the name of one beside a file. Other programs write
# `.lock` and `.NAME.lock`, which must not be emptied and removed.
LOCK_FILE = ".use_st5.lock"
# A lock that is being given back can look taken for an instant.
_PATIENCE = 0.5
# What the names of temporary files and folders hold, and how that of an older folder ends while
# the folder is being replaced.
_MARK, _OLDER = ".use_st5-", ".older"


@contextlib.contextmanager
def sole_writer(
    path: str | os.PathLike[str], *, inside: bool = False, remote: bool = False
) -> Iterator[None]:
    """Makes this process the only one that writes the file or folder `path`, for a block.

    Another process is refused at once. Blocks of one process may be nested. Leftovers of killed
    writers of `path` are removed. In the block, `atomic_path` also removes those of each file or
    folder below `path` that it writes anew.

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
        raise BlockingIOError(
            f"{target} is being written by {holder}: wait until it has ended, or choose another "
            "path to write to."
        ) from None
    _held[target] += 1
    try:
        if os.name != "nt":  # Windows keeps others from reading it.
            with contextlib.suppress(OSError):  # On a full disk the lock holds without this text.
                file.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        if not inside:
            _remove_leftovers(target)
        yield
    finally:
        _held[target] -= 1
        if not _held[target]:
            del _held[target]
            if os.name != "nt":
                file.unlink(missing_ok=True)
        lock.release()


@contextlib.contextmanager
def atomic_path(
    path: str | os.PathLike[str], *, older: Collection[str] | None = None
) -> Iterator[Path]:
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

    Args:
        path: Where the finished file or folder is to stand.
        older: For a remote folder, the names of the files there that are replaced, as for
            `remote_files.upload`. A local folder is always replaced as a whole.

    Yields:
        The temporary path; nothing exists there yet.

    Raises:
        FileNotFoundError: The block ended without creating anything.
        OSError: A folder would replace a file, or a file a folder, or either a device.
    """
    if remote := remote_path(path):
        with tempfile.TemporaryDirectory() as folder:
            local = joined(Path(folder), PurePosixPath(remote).name, where=remote)
            yield local
            if not local.exists():
                raise FileNotFoundError(f"Expected a file or folder to upload to {path}.")
            upload(local, remote, older=older)
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
    name = f".{target.stem}{_MARK}{secrets.token_hex(6)}{target.suffix}"
    temporary, moved_aside = target.with_name(name), target.with_name(name + _OLDER)
    try:
        yield temporary
        _flush(temporary)
        if temporary.is_dir() and target.is_dir():
            target.rename(moved_aside)
        temporary.replace(target)
    except BaseException:
        if moved_aside.exists() and not target.exists():
            moved_aside.rename(target)
        _remove(temporary)
        raise
    _remove(moved_aside)


def _remove_leftovers(target: Path) -> None:
    """Removes leftovers of killed writers of `target`; moves back a folder that was moved aside."""
    pattern = f".{glob.escape(target.stem)}{_MARK}{'?' * 12}{glob.escape(target.suffix)}"
    for older in target.parent.glob(pattern + _OLDER):
        if target.exists():
            _remove(older)
        else:
            older.rename(target)
    for temporary in target.parent.glob(pattern):
        _remove(temporary)


def _remove(path: Path) -> None:
    """Removes a file, or a folder with its content; it is no error if nothing is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Flushes a file, or every file below a folder, to the disk."""
    for file in (path, *path.rglob("*")):
        if file.is_file():
            with file.open("rb+" if os.name == "nt" else "rb") as stream:
                os.fsync(stream.fileno())


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(dict(value), indent=2) + "\n", encoding="utf-8")
