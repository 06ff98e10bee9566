"""A model's folder as one compressed file, for the URL of `hub.load`."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path

from use_st5.io.files import atomic_path


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
    entries = sorted(folder.rglob("*"), key=lambda entry: entry.relative_to(folder).as_posix())
    with atomic_path(path) as temporary:
        with (
            temporary.open("wb") as file,
            # By default the header would contain a name and the time.
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for entry in entries:
                _add(archive, entry, entry.relative_to(folder).as_posix())
        return temporary.stat().st_size


def _add(archive: tarfile.TarFile, entry: Path, name: str) -> None:
    """Adds a file or a folder; in place of a link its target, because hub refuses links."""
    header = tarfile.TarInfo(name)
    if entry.is_dir():
        header.type, header.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(header)
        return
    header.size, header.mode = entry.stat().st_size, 0o644
    with entry.open("rb") as file:
        archive.addfile(header, file)
