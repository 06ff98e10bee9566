"""The files of a folder of downloads, those inside its archives too."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

_ZIP = (".zip",)
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# Thirty times the largest file that is looked for; an archive may promise any size.
_LARGEST = 100_000_000


class Downloads:
    """Looks files up in a folder of downloads; archives need not be unpacked.

    Nothing is unpacked to the disk: members of archives are read into memory, when they are asked
    for, and their paths are only compared.

    Args:
        folder: The folder; it is searched with all folders below it.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: An archive in it is damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{folder}: expected a folder of downloads, found none.")
        # The folder a file is in (with the archive, if it is in one) and its name → where it is.
        self._places: dict[tuple[str, str], tuple[Path, str]] = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                self._add(path)

    def folder_of(self, names: Iterable[str]) -> str | None:
        """The first folder, by its path, that has files of all these names; None if none has."""
        wanted = set(names)
        for folder in sorted({folder for folder, _ in self._places}):
            if all((folder, name) in self._places for name in wanted):
                return folder
        return None

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder that `folder_of` gave, sorted."""
        return sorted(name for each, name in self._places if each == folder)

    def read(self, folder: str, name: str) -> bytes:
        """The content of a file in a folder that `folder_of` gave.

        Raises:
            ValueError: The archive it is in is damaged, or promises too large a file.
        """
        path, member = self._places[folder, name]
        if not member:
            return path.read_bytes()
        with _readable(path):
            return _read_member(path, member)

    def _add(self, path: Path) -> None:
        inside = path.relative_to(self.folder).as_posix()
        if not path.name.endswith(_ZIP + _TAR):
            folder = path.parent.relative_to(self.folder).as_posix()
            self._places[folder, path.name] = (path, "")
            return
        with _readable(path):
            members = [*_members(path)]
        for member in members:
            place = PurePosixPath(inside, member)
            self._places[str(place.parent), place.name] = (path, member)


def _members(archive: Path) -> Iterator[str]:
    if archive.name.endswith(_ZIP):
        with zipfile.ZipFile(archive) as opened:
            yield from (each.filename for each in opened.infolist() if not each.is_dir())
    else:
        with tarfile.open(archive) as opened:
            yield from (each.name for each in opened if each.isfile())


def _read_member(archive: Path, member: str) -> bytes:
    if archive.name.endswith(_ZIP):
        with zipfile.ZipFile(archive) as opened:
            _check_size(member, opened.getinfo(member).file_size)
            return opened.read(member)
    with tarfile.open(archive) as opened:
        _check_size(member, opened.getmember(member).size)
        stream = opened.extractfile(member)
        if stream is None:
            raise ValueError(f"{archive}: expected {member} to be a file, it is none.")
        return stream.read()


def _check_size(member: str, size: int) -> None:
    if size > _LARGEST:
        raise ValueError(f"{member} has {size:,} bytes, at most {_LARGEST:,} were expected")


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    """Turns whatever damage does to the libraries into one error with the archive's name."""
    try:
        yield
    # BadZipFile, TarError, zlib.error, LZMAError, EOFError, RuntimeError (encrypted), KeyError …
    except Exception as error:
        raise ValueError(
            f"{archive}: expected an archive that can be read ({error}). Download it again."
        ) from error
