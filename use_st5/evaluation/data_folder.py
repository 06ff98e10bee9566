"""The folder that holds the evaluation sets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from use_st5.evaluation.data_source import DataSource

# Archives put their files one or two folders below the place they are unpacked in.
_DEPTHS = ("", "*/", "*/*/")


class MissingDataError(FileNotFoundError):
    """A data set that a task needs is not in the data folder; the message says how to get it."""


class DataFolder:
    """Finds data sets below a folder and says what their files are.

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
        """The file or folder of a data set; the shallowest where there are several.

        Of a place with wildcards it is the folder that holds the first match.

        Raises:
            MissingDataError: It is not there.
        """
        for place in source.places:
            for depth in _DEPTHS:
                found = sorted(self.path.glob(depth + place))
                if found:
                    return found[0].parent if "*" in place else found[0]
        raise MissingDataError(
            f"{source.name}: expected {' or '.join(source.places)} in {self.path} or up to two "
            f"folders deeper, found none. Get it from {source.origin}."
        )

    def has(self, source: DataSource) -> bool:
        """Whether the data set is there."""
        try:
            self.find(source)
        except MissingDataError:
            return False
        return True

    def hashes(self, sources: Iterable[DataSource]) -> dict[str, str]:
        """SHA-256 of each file of data sets, by its path relative to the data folder.

        Raises:
            MissingDataError: One of them is not there.
        """
        files = {file for source in sources for file in self._files(source)}
        return {file.relative_to(self.path).as_posix(): self._hash(file) for file in sorted(files)}

    def _hash(self, file: Path) -> str:
        if file not in self._hashes:  # several tasks read the same file
            self._hashes[file] = _sha256(file)
        return self._hashes[file]

    def _files(self, source: DataSource) -> list[Path]:
        found = self.find(source)
        patterns = [Path(place).name for place in source.places if "*" in place]
        if patterns:
            return [file for pattern in patterns for file in found.glob(pattern) if file.is_file()]
        if found.is_file():
            return [found]
        return [file for file in found.rglob("*") if file.is_file()]


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
