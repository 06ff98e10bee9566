"""The folder that an exporter replaces, and a folder as one compressed file."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path

from use_st5.hub.model_manifest import other_names
from use_st5.io.files import atomic_path

# The file by which a folder says which of its files an exporter wrote, one name a line.
FILE_LIST = "use_st5_files.txt"


def write_file_list(folder: Path) -> None:
    """Writes the names of all files in a new folder into a file there."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    (folder / FILE_LIST).write_text("\n".join([*names, FILE_LIST, ""]), encoding="utf-8")


def check_replaced_folder(path: str | os.PathLike[str], kind: str) -> None:
    """Checks that a folder is empty or missing, or holds only what an exporter wrote (`kind`)."""
    folder = Path(path)
    if folder.is_dir() and not any(folder.iterdir()):
        return
    content = "a file" if folder.exists() else ""
    if folder.is_dir():
        file_list = folder / FILE_LIST
        listed = file_list.read_text("utf-8", "replace") if file_list.is_file() else ""
        names = {*listed.splitlines()}
        for path in folder.rglob("__pycache__/*.pyc"):  # what Python makes of its programs
            compiled = path.relative_to(folder)
            source = compiled.parents[1] / f"{compiled.name.partition('.')[0]}.py"
            if source.as_posix() in names:
                names.add(compiled.as_posix())
        content = other_names(folder, names)
    if content:
        raise FileExistsError(f"{folder} holds more than {kind} of use_st5: {content}. Move this.")


def write_archive(folder: Path, path: str | os.PathLike[str]) -> int:
    """Packs a SavedModel's folder into a tar file compressed by gzip.

    The model is at the archive's root, and each folder comes before its files, as `tensorflow_hub`
    unpacks it. Equal folders give equal bytes: names are sorted, and neither times nor owners are
    written. The file appears only when it is complete.

    Args:
        folder: The folder of a SavedModel.
        path: The file to write.

    Returns:
        The size of the file in bytes.
    """

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        mode = 0o755 if entry.isdir() else 0o644
        return entry.replace(mtime=0, uid=0, gid=0, uname="", gname="", mode=mode, deep=False)

    with atomic_path(path) as temporary:
        with (
            temporary.open("wb") as file,
            # By default the header would contain a name and the time.
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
            # Instead of a link its target is written, because hub refuses links.
            tarfile.open(
                fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT, dereference=True
            ) as archive,
        ):
            for entry in sorted(folder.iterdir()):
                archive.add(entry, entry.name, filter=anonymous)
        return temporary.stat().st_size
