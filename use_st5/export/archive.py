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
