"""Checks which folder an exporter may replace."""

from __future__ import annotations

import os
from pathlib import Path

from use_st5.hub.model_manifest import other_names

# The file by which a folder says which of its files an exporter wrote, one name a line.
FILE_LIST = "use_st5_files.txt"


def write_file_list(folder: Path) -> None:
    """Writes the names of all files in a new folder into a file there."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    (folder / FILE_LIST).write_text("\n".join([*names, FILE_LIST, ""]), encoding="utf-8")


def check_replaced_folder(path: str | os.PathLike[str], kind: str) -> None:
    """Checks that a folder is empty or missing, or holds only what an exporter wrote.

    Args:
        path: The folder.
        kind: What the exporter writes, such as "a page".
    """
    folder = Path(path)
    if folder.is_dir() and not any(folder.iterdir()):
        return
    content = "a file" if folder.exists() else ""
    if folder.is_dir():
        content = other_names(folder, _written_names(folder))
    if content:
        raise FileExistsError(
            f"Expected {folder} to be empty or to contain only {kind} of use_st5, because it would "
            f"be replaced. Found {content}. Move this away, or choose another folder."
        )


def _written_names(folder: Path) -> set[str]:
    """The names that the file list of a folder names, and what Python makes of its programs."""
    file_list = folder / FILE_LIST
    names = (
        {*file_list.read_text("utf-8", "replace").splitlines()} if file_list.is_file() else set()
    )
    compiled = (path.relative_to(folder) for path in folder.rglob("__pycache__/*.pyc"))
    sources = {path: path.parents[1] / f"{path.name.partition('.')[0]}.py" for path in compiled}
    return names | {
        path.as_posix() for path, source in sources.items() if source.as_posix() in names
    }
