"""Downloads: of Hugging Face's hub, of Kaggle Models, and of archives by URL; and uploads.

For a checkpoint we download safetensors, JSON and vocabularies. Files that can hold code (`.bin`,
`.pt`, `.py`, pickles) are never downloaded. For a SavedModel we download its own files.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import json
import lzma
import re
import stat
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, Any
from urllib.parse import urlsplit

from use_st5._imports import require
from use_st5.hub.cache import ARCHIVES, LIMIT, kept_content, limit
from use_st5.hub.model_manifest import SAVED_MODEL_FILE
from use_st5.io.files import check_inner_names, is_inner

EXTRA = "hub-models"
_HF = re.compile(r"hf://((?:[\w.-]+/)?[\w.-]+)(?:@([\w./-]+))?")
_KAGGLE = re.compile(r"kaggle://([\w.-]+/[\w.-]+/[\w.-]+/[\w.-]+(?:/\d+)?)")
_MODULES = "modules.json"
# The files of a SavedModel.
_SAVED_MODEL = re.compile(
    r"(saved_model\.pb|fingerprint\.pb|use_st5\.json|README\.md|(variables|assets)/.+)"
)
_SAFETENSORS = re.compile(r"model.*\.safetensors")
_VOCABULARIES = {".json", ".txt", ".model"}
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
# The headers of which huggingface_hub makes names of files, and the names that stay in its cache.
_NAMING_HEADERS = ("X-Linked-ETag", "ETag", "X-Repo-Commit")
_INNER_NAME = re.compile(r'(?!.*(?:\.\.|//))(?:W/)?"?\w[\w.+=/-]*"?')
_UNREACHABLE = {"OfflineModeIsEnabled", "ConnectError", "ConnectionError", "TimeoutException"}
_LOGIN = "set HF_TOKEN, or run: hf auth login"
# The error of huggingface_hub → Python's own, and what to do.
_HUB_ERRORS = {
    "GatedRepoError": (PermissionError, f"first accept the model's terms on its page; {_LOGIN}"),
    "RepositoryNotFoundError": (FileNotFoundError, f"no such model; for a private one {_LOGIN}"),
    "RevisionNotFoundError": (FileNotFoundError, "expected a branch, tag or commit of the model"),
    "LocalEntryNotFoundError": (ConnectionError, "no connection to the hub and no copy here"),
    "LocalTokenNotFoundError": (PermissionError, _LOGIN),
    "JSONDecodeError": (OSError, "expected JSON of the hub, received a page; check HF_ENDPOINT"),
}

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


def hugging_face_name(name: str) -> tuple[str, str | None]:
    """Returns the repository and revision of `hf://ORG/NAME@REVISION`; None: the newest one."""
    match = _HF.fullmatch(name)
    if match is None:
        raise ValueError(f"Expected hf://ORG/NAME or hf://ORG/NAME@REVISION, received {name!r}.")
    return match[1], match[2]


def from_hugging_face(name: str) -> tuple[Path, str]:
    """Downloads a model into the cache of huggingface_hub; returns its folder and commit.

    The environment variables HF_TOKEN, HF_HOME, HF_HUB_OFFLINE and HF_ENDPOINT have their effect.
    """
    repository, revision = hugging_face_name(name)
    hub = require("huggingface_hub", EXTRA)
    with _hub_errors(name), _inner_names_only(hub, name):
        try:
            info = hub.HfApi().model_info(repository, revision=revision)
        except Exception as error:
            if not _UNREACHABLE & _class_names(error):
                raise
            found = hub.snapshot_download(repository, revision=revision, local_files_only=True)
            commit = Path(found).name
            listed = [path.relative_to(found).as_posix() for path in Path(found).rglob("*")]
        else:
            commit, listed = str(info.sha), [each.rfilename for each in info.siblings or []]
        if not _COMMIT.fullmatch(commit):
            raise ValueError(f"{name}: expected the hash of a commit, received {commit[:200]!r}.")
        check_inner_names(listed, where=name)
        modules: list[str] = []
        if _MODULES in listed and SAVED_MODEL_FILE not in listed:
            path = hub.hf_hub_download(repository, _MODULES, revision=commit)
            # A damaged file is an error when the checkpoint is opened.
            with contextlib.suppress(ValueError, TypeError, KeyError):
                entries = json.loads(Path(path).read_text(encoding="utf-8"))
                modules = [str(each["path"]) for each in entries if is_inner(str(each["path"]))]
        names = wanted_files(listed, modules, where=name)
        paths = [Path(hub.hf_hub_download(repository, each, revision=commit)) for each in names]
    return paths[0].parents[len(PurePosixPath(names[0]).parts) - 1], commit


def wanted_files(names: list[str], modules: list[str], *, where: str) -> list[str]:
    """Returns which files of a repository are downloaded; `modules` are folders of a checkpoint."""
    if SAVED_MODEL_FILE in names:
        return [name for name in names if _SAVED_MODEL.fullmatch(name)]
    file_names = [
        str(path)
        for path in map(PurePosixPath, names)
        if str(path.parent).removeprefix(".") in {"", *modules}
        and (path.suffix in _VOCABULARIES or _SAFETENSORS.fullmatch(path.name))
    ]
    if not any(name.endswith(".safetensors") for name in file_names):
        found = f"{sorted(names)[:12]}. Files that can hold code are not downloaded"
        raise FileNotFoundError(f"{where}: expected *.safetensors or a SavedModel, found {found}.")
    return file_names


def from_kaggle(name: str) -> tuple[Path, str]:
    """Downloads a SavedModel of Kaggle Models, TensorFlow Hub's successor, by kagglehub."""
    with _kaggle(name) as (client, handle):
        folder = Path(client.model_download(handle))
    return folder, folder.name


def to_hugging_face(folder: Path, name: str, *, private: bool, message: str) -> str:
    """Uploads a folder as a commit of a repository, which is created if it does not exist.

    Returns:
        The address of the commit.
    """
    repository, revision = hugging_face_name(name)
    if revision is not None or "/" not in repository:
        raise ValueError(f"Expected hf://ORG/NAME to upload to, received {name!r}.")
    api = require("huggingface_hub", EXTRA).HfApi()
    with _hub_errors(name):
        api.create_repo(repository, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)
    return str(commit.commit_url)


def to_kaggle(folder: Path, name: str, *, license: str, message: str) -> str:
    """Uploads a folder as a new version of a model of Kaggle; returns its name."""
    with _kaggle(name) as (client, handle):
        client.model_upload(handle, str(folder), license_name=license, version_notes=message)
    return name


@contextlib.contextmanager
def _inner_names_only(hub: ModuleType, name: str) -> Iterator[None]:
    """Refuses answers that would lead huggingface_hub out of its cache, before it reads them."""

    def check(answer: Any) -> None:
        for header in _NAMING_HEADERS if answer.request.method == "HEAD" else ():
            if not _INNER_NAME.fullmatch(value := answer.headers.get(header, "1")):
                raise ValueError(f"{name}: expected a hash in {header}, received {value[:200]!r}.")

    hooks = hub.get_session().event_hooks["response"]
    hooks.append(check)
    try:
        yield
    finally:
        hooks.remove(check)


@contextlib.contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turns the errors of huggingface_hub into Python's own, which say what to do."""
    try:
        yield
    except Exception as error:
        first_line = (str(error).strip().splitlines() or [""])[0]
        for known, (kind, advice) in _HUB_ERRORS.items():
            if known in _class_names(error):
                raise kind(f"{name}: {advice} ({first_line}).") from error
        if isinstance(error, (ValueError, FileNotFoundError)):
            raise
        if getattr(getattr(error, "response", None), "status_code", 0) in (401, 403):
            raise PermissionError(f"{name}: refused ({first_line}); {_LOGIN}.") from error
        raise OSError(f"{name}: the transfer failed ({first_line}). Run again.") from error


@contextlib.contextmanager
def _kaggle(name: str) -> Iterator[tuple[ModuleType, str]]:
    """Gives kagglehub and what it calls the model, and turns its errors into an OSError."""
    match = _KAGGLE.fullmatch(name)
    if match is None:
        raise ValueError(f"Expected kaggle://OWNER/MODEL/FRAMEWORK/VARIATION, received {name!r}.")
    kagglehub = require("kagglehub", EXTRA)
    try:
        yield kagglehub, match[1]
    except Exception as error:  # An error of requests, kagglehub or kagglesdk.
        raise OSError(f"{name}: failed ({type(error).__name__}: {error}).") from error


def _class_names(error: Exception) -> set[str]:
    return {each.__name__ for each in type(error).__mro__}


def from_archive(url: str) -> tuple[Path, str]:
    """Downloads and unpacks an archive; returns the folder of the model and the sha256.

    If the archive contains one folder and nothing else, this folder is the model.

    Args:
        url: `https://….tar.gz`, `.tgz` or `.zip`; http is accepted only from this machine.
    """
    parts = urlsplit(url)
    if not parts.path.endswith(_SUFFIXES) and _COMPRESSED not in parts.query:
        hint = "A model of tfhub.dev is now on Kaggle: kaggle://OWNER/MODEL/…"
        raise ValueError(f"Expected the URL of an archive {_SUFFIXES}, received {url}. {hint}")
    _check_safe(url)
    with tempfile.TemporaryFile() as file:
        digest, size, most = hashlib.sha256(), 0, max(limit(), _SMALL)
        try:
            with urllib.request.build_opener(_Redirects).open(url, timeout=_TIMEOUT) as answer:
                while (piece := answer.read(_PIECE)) and size <= most:
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(f"{url}: the download failed ({error}). Run again.") from error
        if size > most:
            raise OSError(f"{url}: expected at most {most:,} bytes; set {LIMIT} to more.")
        sha256 = digest.hexdigest()
        folder = kept_content(ARCHIVES, sha256[:16], url, lambda target: _unpack(file, target, url))
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder, sha256


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to safe addresses alone."""

    def redirect_request(self, *args: Any) -> urllib.request.Request | None:
        request = super().redirect_request(*args)
        if request is not None:
            _check_safe(request.full_url)
        return request


def _check_safe(url: str) -> None:
    """A SavedModel is a program, and without https others could replace it."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in _LOCAL:
        raise ValueError(f"Expected an address that begins with https://, received {url}.")


def _unpack(file: IO[bytes], target: Path, url: str) -> None:
    """Unpacks the files and folders of a tar or zip file into a new folder, and nothing else."""
    target.mkdir()
    most, count, total = max(_RATIO * file.seek(0, 2), _SMALL), 0, 0

    def check(name: str, size: int, is_link: bool) -> None:
        nonlocal count, total
        count, total = count + 1, total + size
        if is_link:
            raise ValueError(f"{url}: expected files and folders, found {name!r}, a link.")
        if count > _MEMBERS or total > most:
            raise ValueError(f"{url}: expected at most {_MEMBERS:,} files and {most:,} bytes.")

    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                for info in archive.infolist():
                    check(info.filename, info.file_size, stat.S_ISLNK(info.external_attr >> 16))
                archive.extractall(target)
            return
        file.seek(0)
        with _Unpacked(fileobj=file) as packed, tarfile.open(fileobj=packed, mode="r:") as tar:
            for member in tar:
                check(member.name, member.size, not (member.isfile() or member.isdir()))
                packed.room = sys.maxsize
                tar.extract(member, target, filter="data")
                packed.room = _HEADERS
    except _DAMAGED as error:
        raise ValueError(f"{url}: expected a tar or zip archive ({error}).") from error


class _Unpacked(gzip.GzipFile):
    """The bytes of a tar file: `tarfile` reads a header of any size into memory at once."""

    room = _HEADERS  # bytes that may be read

    def read(self, size: int | None = -1) -> bytes:
        self.room -= sys.maxsize if size is None or size < 0 else size
        if self.room < 0:
            raise tarfile.HeaderError(f"more than {_HEADERS:,} bytes of headers")
        return super().read(size)
