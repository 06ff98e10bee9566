"""Downloads from Hugging Face's hub and from Kaggle Models.

For a checkpoint we download safetensors, JSON and vocabularies. Files that can hold code (`.bin`,
`.pt`, `.py`, pickles) are never downloaded. For a SavedModel we download its own files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from use_st5._imports import require
from use_st5.hub.bundled import SAVED_MODEL_FILE
from use_st5.io.files import file_sha256
from use_st5.io.remote_files import check_inner_names, is_inner

EXTRA = "hub-models"
_HF = re.compile(r"hf://((?:[\w.-]+/)?[\w.-]+)(?:@([\w./-]+))?")
_KAGGLE = re.compile(r"kaggle://([\w.-]+/[\w.-]+/[\w.-]+/[\w.-]+(?:/\d+)?)")
_MODULES = "modules.json"
# The files of a SavedModel.
_SAVED_MODEL = re.compile(
    r"(saved_model\.pb|fingerprint\.pb|use_st5\.json|README\.md|(variables|assets)/.+)"
)
_SAFETENSORS = re.compile(r"model.*\.safetensors")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
# The headers of which huggingface_hub makes names of files, and the names that stay in its cache.
_NAMING_HEADERS = ("X-Linked-ETag", "ETag", "X-Repo-Commit")
_INNER_NAME = re.compile(r'(?!.*(?:\.\.|//))(?:W/)?"?\w[\w.+=/-]*"?')
_VOCABULARIES = {".json", ".txt", ".model"}


@dataclasses.dataclass(frozen=True)
class Downloaded:
    """A model that was downloaded.

    Attributes:
        folder: The folder with the files.
        identity: The commit, version or hash.
        names: The files, by their paths below the folder; None: all files in the folder.
    """

    folder: Path
    identity: str
    names: list[str] | None = None

    def sizes(self) -> dict[str, int]:
        """Bytes of each file."""
        names = self.names
        if names is None:
            files = (each for each in self.folder.rglob("*") if each.is_file())
            names = [each.relative_to(self.folder).as_posix() for each in files]
        return {name: (self.folder / name).stat().st_size for name in names}


def hugging_face_name(name: str) -> tuple[str, str | None]:
    """Returns the repository and revision of `hf://ORG/NAME@REVISION`; None: the newest one.

    Raises:
        ValueError: The name has another form.
    """
    match = _HF.fullmatch(name)
    if match is None:
        raise ValueError(
            f"Expected hf://ORG/NAME or hf://ORG/NAME@REVISION, such as "
            f"hf://sentence-transformers/all-MiniLM-L6-v2, received {name!r}."
        )
    return match[1], match[2]


def from_hugging_face(name: str) -> Downloaded:
    """Downloads a model into the cache of huggingface_hub, and checks the hash of each file.

    The environment variables HF_TOKEN, HF_HOME, HF_HUB_OFFLINE and HF_ENDPOINT have their effect.

    Raises:
        ValueError: The name has another form, or a file has another hash than the hub says.
        FileNotFoundError: The model or the revision does not exist, or it has no safetensors.
        OSError: The download failed, or the account may not read the model.
    """
    repository, revision = hugging_face_name(name)
    hub = require("huggingface_hub", EXTRA)
    with _hub_errors(name):
        try:
            info = hub.HfApi().model_info(repository, revision=revision, files_metadata=True)
        except Exception as error:
            if not _is_unreachable(error):
                raise
            return _already_there(hub, name, repository, revision, error)
        if not _COMMIT.fullmatch(str(info.sha)):
            raise ValueError(
                f"{name}: expected the hash of a commit, the hub answered {str(info.sha)[:200]!r}. "
                "Check HF_ENDPOINT."
            )
        listed = {each.rfilename: each for each in info.siblings or []}
        check_inner_names([*listed], where=name)
        modules: list[str] = []
        if _MODULES in listed and SAVED_MODEL_FILE not in listed:
            path = _fetch(hub, name, repository, info.sha, listed[_MODULES])
            modules = _module_folders(path)
        names = wanted_files([*listed], modules, where=name)
        paths = [_fetch(hub, name, repository, info.sha, listed[each]) for each in names]
    folder = paths[0].parents[len(PurePosixPath(names[0]).parts) - 1]
    return Downloaded(folder, info.sha, names)


def wanted_files(names: list[str], modules: list[str], *, where: str) -> list[str]:
    """Returns the names of the files of a repository that are downloaded.

    Args:
        names: All its files.
        modules: The folders that `modules.json` names.
        where: The name of the model, for messages.

    Raises:
        FileNotFoundError: There is neither a SavedModel nor a file of safetensors.
    """
    if SAVED_MODEL_FILE in names:
        return [name for name in names if _SAVED_MODEL.fullmatch(name)]
    folders = {"", *modules}
    file_names = [
        str(path)
        for path in map(PurePosixPath, names)
        if str(path.parent).removeprefix(".") in folders
        and (path.suffix in _VOCABULARIES or _SAFETENSORS.fullmatch(path.name))
    ]
    if not any(name.endswith(".safetensors") for name in file_names):
        text = ", ".join(sorted(names)[:12]) or "no files"
        raise FileNotFoundError(
            f"{where}: expected model.safetensors or saved_model.pb, found {text}. Files that can "
            "hold code (.bin, .pt, .h5) are not downloaded: choose a model or a revision that has "
            "safetensors."
        )
    return file_names


def from_kaggle(name: str) -> Downloaded:
    """Downloads a SavedModel of Kaggle Models, TensorFlow Hub's successor, by kagglehub."""
    match = _KAGGLE.fullmatch(name)
    if match is None:
        raise ValueError(
            "Expected kaggle://OWNER/MODEL/FRAMEWORK/VARIATION or the same with /VERSION, such as "
            "kaggle://google/universal-sentence-encoder/tensorFlow2/universal-sentence-encoder/2, "
            f"received {name!r}."
        )
    kagglehub = require("kagglehub", EXTRA)
    try:
        folder = Path(kagglehub.model_download(match[1]))
    except Exception as error:  # An error of requests, kagglehub or kagglesdk.
        raise OSError(
            f"{name}: expected a model of Kaggle, the download failed "
            f"({type(error).__name__}: {error}). Check the name and the network, and run again."
        ) from error
    return Downloaded(folder, folder.name)


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
    match = _KAGGLE.fullmatch(name)
    if match is None or match[1].count("/") != 3:
        raise ValueError(
            f"Expected kaggle://OWNER/MODEL/tensorFlow2/VARIATION to upload to, received {name!r}."
        )
    kagglehub = require("kagglehub", EXTRA)
    try:
        kagglehub.model_upload(match[1], str(folder), license_name=license, version_notes=message)
    except Exception as error:  # An error of requests, kagglehub or kagglesdk.
        raise OSError(f"{name}: the upload failed ({type(error).__name__}: {error}).") from error
    return name


def _already_there(
    hub: ModuleType, name: str, repository: str, revision: str | None, error: Exception
) -> Downloaded:
    """Finds a model in the cache of huggingface_hub, because the hub cannot be reached."""
    try:
        found = hub.snapshot_download(repository, revision=revision, local_files_only=True)
        folder = Path(found)
        files = [each.relative_to(folder).as_posix() for each in folder.rglob("*")]
        names = wanted_files(files, _module_folders(folder / _MODULES), where=name)
        for index in (each for each in names if each.endswith(".safetensors.index.json")):
            for shard in json.loads((folder / index).read_bytes())["weight_map"].values():
                (folder / index).with_name(shard).stat()
    except Exception as cache_error:
        raise ConnectionError(
            f"{name}: expected a model that was downloaded before, since Hugging Face's hub cannot "
            f"be reached ({type(error).__name__}: {_first_line(error)}); found none, or not all of "
            "its files. Check the network and HF_HUB_OFFLINE, and run again."
        ) from cache_error
    return Downloaded(folder, folder.name, names)


def _fetch(hub: ModuleType, name: str, repository: str, commit: str, listed: Any) -> Path:
    """Downloads one file, and checks its hash; a damaged file is removed."""
    with _inner_names_only(hub, name):
        path = Path(hub.hf_hub_download(repository, listed.rfilename, revision=commit))
    # The folder of the repository, which a user may have moved to another disk by a link.
    own_folder = path.parents[len(PurePosixPath(listed.rfilename).parts) + 1]
    cache_folders = (Path(hub.constants.HF_HUB_CACHE), own_folder)
    if not any(path.resolve().is_relative_to(each.resolve()) for each in cache_folders):
        raise ValueError(
            f"{name}: expected {path} inside the cache, found a link to {path.resolve()}. Remove "
            "the link, and run again."
        )
    if listed.lfs:
        kind, expected, digest = "sha256", listed.lfs.sha256, file_sha256(path)
    else:  # git's hash
        kind, expected, content = "git sha1", listed.blob_id, path.read_bytes()
        head = b"blob %d\0" % len(content)
        digest = hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
    if expected is not None and digest != expected:
        with contextlib.suppress(OSError):
            path.resolve().unlink()
            path.unlink(missing_ok=True)
        raise ValueError(
            f"{name}: expected {listed.rfilename} with the {kind} {expected}, received one with "
            f"{digest}. The damaged file was removed: run again."
        )
    return path


@contextlib.contextmanager
def _inner_names_only(hub: ModuleType, name: str) -> Iterator[None]:
    """Refuses answers that would lead huggingface_hub out of its cache, before it reads them."""

    def check(answer: Any) -> None:
        for header in _NAMING_HEADERS if answer.request.method == "HEAD" else ():
            value = answer.headers.get(header, "1")
            if not _INNER_NAME.fullmatch(value):
                raise ValueError(
                    f"{name}: expected a hash in the header {header}, the hub answered "
                    f"{value[:200]!r}. Nothing was written. Check HF_ENDPOINT."
                )

    hooks = hub.get_session().event_hooks["response"]
    hooks.append(check)
    try:
        yield
    finally:
        hooks.remove(check)


def _module_folders(path: Path) -> list[str]:
    """Returns the folders that `modules.json` names; `convert` later reports a damaged file."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        folders = [str(each["path"]) for each in json.loads(path.read_text(encoding="utf-8"))]
        return [folder for folder in folders if is_inner(folder)]
    return []


@contextlib.contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turns the errors of huggingface_hub into Python's own, which say what to do."""
    errors = importlib.import_module("huggingface_hub.errors")
    login = "set HF_TOKEN, or run: hf auth login"
    try:
        yield
    except errors.GatedRepoError as error:
        raise PermissionError(
            f"{name}: the model's terms must be accepted on the hub's page first. Then {login}"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f"{name}: expected a model of Hugging Face's hub, found none of this name. Check the "
            f"spelling; for a private model {login}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise FileNotFoundError(
            f"{name}: expected a branch, tag or commit of the model, found none of this name."
        ) from error
    except json.JSONDecodeError as error:
        endpoint = importlib.import_module("huggingface_hub.constants").ENDPOINT
        raise OSError(
            f"{name}: expected JSON from {endpoint}, received something else, such as the page of "
            "a proxy. Check HF_ENDPOINT and the network."
        ) from error
    except (ValueError, ConnectionError, FileNotFoundError):
        raise
    except Exception as error:
        status = getattr(getattr(error, "response", None), "status_code", 0)
        if isinstance(error, errors.LocalTokenNotFoundError) or status in (401, 403):
            raise PermissionError(
                f"{name}: expected a token with access, the hub refused ({_first_line(error)}): "
                f"{login}. To push, the token needs the permission to write."
            ) from error
        raise OSError(
            f"{name}: the transfer failed ({type(error).__name__}: {_first_line(error)}). Run "
            "again: complete files are kept."
        ) from error


def _is_unreachable(error: Exception) -> bool:
    """Whether the error means that there is no connection, and is not a server's answer."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names & {"OfflineModeIsEnabled", "ConnectError", "ConnectionError", "TimeoutException"}
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
