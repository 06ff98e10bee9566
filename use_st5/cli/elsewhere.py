"""What a command names on gs:// and every other file system that TensorFlow knows."""

from __future__ import annotations

import os
from pathlib import Path

from use_st5._remote_files import brought, check_inner, remote_path
from use_st5.cli.models import start_tensorflow
from use_st5.cli.output import waiting


def fetched(path: str | os.PathLike[str]) -> Path:
    """A local copy of a file or folder elsewhere; a local path as it is.

    Raises:
        FileNotFoundError: There is nothing elsewhere.
    """
    remote = remote_path(path)
    if remote is None:
        return Path(path)
    start_tensorflow()
    with waiting(f"bringing {remote}"):
        return brought(remote)


def goes_elsewhere(path: Path, *, allowed: bool) -> bool:
    """Whether a command writes elsewhere; refused before any work where it does not.

    Raises:
        ValueError: It is not allowed, or is a whole bucket.
    """
    remote = remote_path(path)
    if remote is None:
        return False
    if not allowed:
        raise ValueError(
            f"{remote}: expected a local path, to which alone this command writes; copy from there"
        )
    start_tensorflow()
    check_inner(remote)
    return True
