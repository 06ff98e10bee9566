"""Checks which folder an exporter may replace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def check_replaced_folder(
    path: str | os.PathLike[str], marker: str, is_ours: Callable[[str], bool], kind: str
) -> None:
    """Checks that a folder is empty or missing, or holds only what the same exporter wrote.

    Args:
        path: The folder.
        marker: The file that each folder of this exporter has.
        is_ours: Whether the exporter writes a file or folder of this name.
        kind: What the exporter writes, such as "a page".

    Raises:
        FileExistsError: The folder holds anything else, or it is a file.
    """
    folder = Path(path)
    if folder.is_dir():
        names = sorted(entry.name for entry in folder.iterdir())
        extras = [name for name in names if not is_ours(name)]
        extras = extras or (names if marker not in names else [])
    else:
        extras = ["a file"] if folder.exists() else []
    if extras:
        raise FileExistsError(
            f"Expected {folder} to be empty or to contain only {kind} of use_st5, because it would "
            f"be replaced. Found {', '.join(extras[:3])}. Move this away, or choose another folder."
        )
