"""The folder with the data sets, and the origin of each of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from use_st5.io.files import file_sha256


@dataclass(frozen=True)
class DataSource:
    """A file or folder that somebody published, in the format it was published in.

    Attributes:
        name: Its name, for example "STS12".
        places: Its paths as published, for example "STS12-en-test"; any of them will do. Each is
            looked for in the data folder and up to two folders deeper. A path may hold the
            wildcards of `pathlib.Path.glob`; it then stands for all files that match.
        origin: Where to get it: who publishes it, and the address.
        licence: Its licence as its publisher states it.
    """

    name: str
    places: tuple[str, ...]
    origin: str
    licence: str = "not stated"


# Archives put their files one or two folders below the place they are unpacked in.
DEPTHS = ("", "*/", "*/*/")
_WILDCARD = re.compile(r"[*?[]")


class MissingDataError(FileNotFoundError):
    """A data set is not in the data folder; the message has its source."""


class DataFolder:
    """Finds data sets and their files below a folder.

    Args:
        path: The folder, with data sets in it or in folders up to two levels deeper.

    Raises:
        FileNotFoundError: There is no such folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise FileNotFoundError(f"{self.path}: expected a folder with data sets, found none.")
        self._hashes: dict[Path, str] = {}

    def find(self, source: DataSource) -> Path:
        """Returns the file or folder of a data set: the first of its places that exists.

        If a path exists at several depths, the shallowest is used. For a place with
        wildcards, the result is the folder that holds the first match.
        """
        place, matches = self._match(source)
        return matches[0].parent if _WILDCARD.search(place) else matches[0]

    def files(self, source: DataSource) -> list[Path]:
        """All files of a data set, sorted."""
        return self._match(source)[1]

    def has(self, source: DataSource) -> bool:
        """Whether the data set was found."""
        try:
            self.find(source)
        except MissingDataError:
            return False
        return True

    def hashes(self, sources: Iterable[DataSource]) -> dict[str, str]:
        """SHA-256 of each file of data sets, by its path relative to the data folder."""
        files = {file for source in sources for file in self._files(source)}
        for file in files - self._hashes.keys():  # Several tasks read the same file.
            self._hashes[file] = file_sha256(file)
        return {
            file.relative_to(self.path).as_posix(): self._hashes[file] for file in sorted(files)
        }

    def _files(self, source: DataSource) -> list[Path]:
        path_groups = (
            match.rglob("*") if match.is_dir() else [match] for match in self._match(source)[1]
        )
        return [file for files in path_groups for file in files if file.is_file()]

    def _match(self, source: DataSource) -> tuple[str, list[Path]]:
        """Returns the place that exists, and its paths: one path, or several with wildcards."""
        for place in source.places:
            for depth in DEPTHS:
                if paths := sorted(self.path.glob(depth + place)):
                    # Copies in other folders are left out.
                    root = paths[0].parts[: len(self.path.parts) + depth.count("/")]
                    return place, [path for path in paths if path.parts[: len(root)] == root]
        raise MissingDataError(
            f"{source.name}: expected {' or '.join(source.places)} in {self.path} or up to two "
            f"folders deeper, found none. Get it from {source.origin}."
        )
