"""Paths from records and listings: only those inside of a folder are accepted."""

from __future__ import annotations

import os
from pathlib import Path, PureWindowsPath


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
    """Checks that all names are paths below a folder, and returns them.

    Args:
        names: The names that are listed in it.
        where: The folder, as error messages write it.

    Raises:
        ValueError: A name is absolute, contains `..`, a backslash or a drive, or points outside.
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
