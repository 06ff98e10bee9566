"""Writing files and folders so that a reader never meets a half-written one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path whose content becomes `path` when the block ends well.

    The block creates either a file or a folder at the temporary path. It lies in the same
    folder as `path` (a rename is atomic within one file system alone) and ends in the same
    suffix (so that `numpy.save` and the like neither add one nor guess the format wrongly).
    On success everything is flushed to the disk and renamed onto `path`; on any exception,
    `KeyboardInterrupt` among them, the temporary is removed and `path` stays as it was.

    A file replaces an older file in one step. A folder cannot replace another in one step on
    every system: the older one is moved aside, and moved back should the rename fail. Parent
    folders that do not exist are created; a symbolic link is followed, not replaced.

    Args:
        path: where the finished file or folder is to stand.

    Yields:
        The temporary path; nothing exists there yet.

    Raises:
        FileNotFoundError: the block ended without creating anything.
        FileExistsError: a folder would replace a file, or a file a folder.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _sibling(target)
    try:
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
    _flush_entry(target.parent)


def _sibling(target: Path) -> Path:
    """Returns an unused hidden name beside `target` with the same suffix."""
    return target.with_name(f".{target.stem}.{secrets.token_hex(6)}{target.suffix}")


def _check_kinds(temporary: Path, target: Path) -> None:
    """Refuses an empty result and the exchange of a file for a folder or the reverse."""
    if not temporary.exists():
        raise FileNotFoundError(
            f"Expected a file or folder to be written to the temporary path {temporary} "
            f"for {target}, found nothing there. Write to the path that atomic_path gives."
        )
    if target.exists() and target.is_dir() != temporary.is_dir():
        old, new = ("folder", "file") if target.is_dir() else ("file", "folder")
        raise FileExistsError(
            f"Expected {target} to be a {new} or not to exist, found a {old}. "
            "Choose another path or remove it first."
        )


def _replace_folder(temporary: Path, target: Path) -> None:
    """Puts the folder `temporary` in the place of the folder `target`."""
    older = _sibling(target)
    target.rename(older)
    try:
        temporary.rename(target)
    except BaseException:
        older.rename(target)
        raise
    _remove(older)


def _remove(path: Path) -> None:
    """Removes a file or a folder with all it holds; nothing there is no error."""
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
