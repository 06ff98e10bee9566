"""Where a command writes: refused before any work where it cannot, or another process does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from use_st5._files import sole_writer
from use_st5._model_manifest import check_replaceable
from use_st5._remote_files import as_written, exists
from use_st5.cli.elsewhere import goes_elsewhere


def check_file(path: Path, *, elsewhere: bool = False) -> None:
    """Checks that a file can be written; folders above it that are missing will be made.

    Args:
        path: The file.
        elsewhere: Whether it may lie on gs:// and the like, as below.

    Raises:
        OSError: It is a folder or a device, or its folder cannot be made or written to.
        ValueError: It lies elsewhere, and may not.
    """
    if goes_elsewhere(path, allowed=elsewhere):
        return
    if path.is_dir():
        raise IsADirectoryError(f"expected a file to write, found a folder: {path}")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"expected a file to write, found a device or a pipe: {path}")
    _check_writable(path.absolute().parent)


@contextlib.contextmanager
def sole_file(path: Path, *, overwrite: bool = True, elsewhere: bool = False) -> Iterator[None]:
    """The block alone writes the file `path`.

    Raises:
        FileExistsError: It is there and `overwrite` is False.
        OSError: As `check_file`, or another process is writing it.
        ValueError: As `check_file`.
    """
    check_file(path, elsewhere=elsewhere)
    with sole_writer(path):
        check_new(path, overwrite=overwrite)
        yield


@contextlib.contextmanager
def sole_folder(path: Path, *, elsewhere: bool = False) -> Iterator[None]:
    """The block alone writes files of its own into the folder `path`, which is made.

    Raises:
        OSError: It is a file, cannot be made or written to, or another process is writing it.
        ValueError: As `check_file`.
    """
    if not goes_elsewhere(path, allowed=elsewhere):
        _check_writable(path)
    with sole_writer(path, inside=True, elsewhere=elsewhere):
        yield


@contextlib.contextmanager
def sole_model(folder: Path, *, overwrite: bool) -> Iterator[None]:
    """The block alone writes a model as the whole of `folder`.

    Raises:
        FileExistsError: It is there and `overwrite` is False, or holds anything but a model.
        OSError: It cannot be made or written to, or another process is writing it.
    """
    if not goes_elsewhere(folder, allowed=True):
        _check_writable(folder.absolute().parent)
    with sole_writer(folder):
        check_replaceable(folder)
        check_new(folder, overwrite=overwrite)
        yield


def check_new(path: Path, *, overwrite: bool) -> None:
    """Checks that a path is free, unless what is there may be replaced.

    Raises:
        FileExistsError: It is not.
    """
    if exists(path) and not overwrite:
        raise FileExistsError(f"{as_written(path)} exists; give --overwrite or choose another name")


def _check_writable(folder: Path) -> None:
    """Checks that files can be made in a folder, or it in the nearest one that exists."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"expected a folder to write, found a file: {there}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"expected a folder to write to, this one may not be: {there}")
