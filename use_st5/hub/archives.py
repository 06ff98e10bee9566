"""Models in an archive by URL: downloaded and unpacked into the cache."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import lzma
import stat
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from use_st5.hub.cache import ARCHIVES, LIMIT, kept_content, limit
from use_st5.hub.client import Downloaded
from use_st5.io.remote_files import check_inner_names

_SUFFIXES = (".tar.gz", ".tgz", ".zip")
# The addresses of TensorFlow Hub itself end in this query.
_COMPRESSED = "tf-hub-format=compressed"
_LOCAL = {"localhost", "127.0.0.1", "::1"}
_TIMEOUT = 60.0  # seconds without a byte
_PIECE = 2**20
# An archive may hold this many times its own bytes, and a gigabyte in any case.
_RATIO, _SMALL = 50, 10**9
# The most files and folders of an archive, and the most bytes of the headers of one of them.
_MEMBERS, _HEADERS = 10_000, 2**16
# The errors of damaged archives, and of zip files with a password.
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile),
    *(EOFError, zlib.error, lzma.LZMAError, RuntimeError),
)


def unpacked(url: str) -> Downloaded:
    """Downloads and unpacks an archive.

    An archive with a link or a name that leads out of it is refused as a whole. If the archive
    contains one folder and nothing else, this folder is the model.

    Args:
        url: `https://….tar.gz`, `.tgz` or `.zip`; http is accepted only from this machine.
    """
    _check(url)
    with tempfile.TemporaryFile() as file:
        identity = _download(url, file)
        folder = kept_content(
            ARCHIVES, identity[:16], url, lambda target: _unpack(file, target, url)
        )
    inside = list(folder.iterdir())
    return Downloaded(inside[0] if len(inside) == 1 and inside[0].is_dir() else folder, identity)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to safe addresses alone."""

    def redirect_request(self, *args: Any) -> urllib.request.Request | None:
        request = super().redirect_request(*args)
        if request is not None:
            _check_safe(request.full_url)
        return request


def _check(url: str) -> None:
    parts = urlsplit(url)
    if not parts.path.endswith(_SUFFIXES) and _COMPRESSED not in parts.query:
        raise ValueError(
            f"Expected the URL of an archive ({', '.join(_SUFFIXES)}), received {url}. A model of "
            "tfhub.dev is now on Kaggle: kaggle://google/universal-sentence-encoder/…"
        )
    _check_safe(url)


def _check_safe(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in _LOCAL:
        raise ValueError(
            f"Expected an address that begins with https://, received {url}. A SavedModel is a "
            "program, and without https others could replace it."
        )


def _download(url: str, file: IO[bytes]) -> str:
    """Downloads the archive at the URL into a file; returns its sha256."""
    digest, size, most = hashlib.sha256(), 0, max(limit(), _SMALL)
    try:
        with urllib.request.build_opener(_Redirects).open(url, timeout=_TIMEOUT) as answer:
            length = answer.headers.get("Content-Length")
            while (piece := answer.read(_PIECE)) and size <= most:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
    except urllib.error.HTTPError as error:
        kind = FileNotFoundError if error.code in (404, 410) else OSError
        raise kind(f"{url}: expected an archive, the server answered {error}.") from error
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"{url}: the download failed ({error}). Run again.") from error
    if size > most:
        raise OSError(
            f"{url}: expected at most {most:,} bytes, the limit of the cache, received more. For a "
            f"larger model set {LIMIT} to a larger number of GB."
        )
    if length is not None and size != int(length):
        raise OSError(f"{url}: expected {int(length):,} bytes, received {size:,}. Run again.")
    return digest.hexdigest()


def _unpack(file: IO[bytes], target: Path, url: str) -> None:
    """Unpacks the files and folders of a tar or zip file into a new folder, and nothing else."""
    target.mkdir()
    size = file.seek(0, 2)
    members = _Members(url, max(_RATIO * size, _SMALL))
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                for info in archive.infolist():
                    is_link = stat.S_ISLNK(info.external_attr >> 16)
                    members.check(info.filename, info.file_size, is_link=is_link)
                archive.extractall(target)
            return
        file.seek(0)
        with _Unpacked(fileobj=file) as packed, tarfile.open(fileobj=packed, mode="r:") as tar:
            for member in tar:
                is_link = not (member.isfile() or member.isdir())
                members.check(member.name, member.size, is_link=is_link)
                packed.room = sys.maxsize
                tar.extract(member, target, filter="data")
                packed.room = _HEADERS
            packed.room = _SMALL
            while packed.read(_PIECE):  # The check sum of the bytes is behind the last member.
                pass
    except _DAMAGED as error:
        raise ValueError(
            f"{url}: expected a tar or zip archive, received {size:,} bytes of another format "
            f"({error}). Check the URL."
        ) from error


class _Members:
    """Refuses links, names that lead out of an archive, and archives of too many files or bytes."""

    def __init__(self, url: str, most: int) -> None:
        self._url, self._most, self._bytes, self._count = url, most, 0, 0

    def check(self, name: str, size: int, *, is_link: bool) -> None:
        """Checks the next member before it is unpacked."""
        if is_link:
            raise ValueError(
                f"{self._url}: expected files and folders, found {name!r}, a link or a device."
            )
        check_inner_names([name.removeprefix("./").rstrip("/")], where=self._url)
        self._count, self._bytes = self._count + 1, self._bytes + size
        if self._count > _MEMBERS or self._bytes > self._most:
            raise ValueError(
                f"{self._url}: expected at most {_MEMBERS:,} files and {self._most:,} bytes, found "
                "more. Nothing was kept."
            )


class _Unpacked(gzip.GzipFile):
    """The bytes of a tar file: `tarfile` reads a header of any size into memory at once.

    Attributes:
        room: The number of bytes that may be read.
    """

    room = _HEADERS

    def read(self, size: int | None = -1) -> bytes:
        self.room -= sys.maxsize if size is None or size < 0 else size
        if self.room < 0:
            raise tarfile.HeaderError(f"more than {_HEADERS:,} bytes of headers")
        return super().read(size)
